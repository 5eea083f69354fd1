"""The instructor's server shows the page of the room, at /room."""

c = get_config()  # noqa: F821
c.ServerApp.jpserver_extensions = {"autograder.classroom.room.desk": True}
# A page that opened one of these pages cannot reach into it, though all servers may have one web address.
c.ServerApp.tornado_settings = {"headers": {"Cross-Origin-Opener-Policy": "noopener-allow-popups"}}
