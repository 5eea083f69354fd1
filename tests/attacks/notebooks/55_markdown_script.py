"""Scripts in text cells, in answers, in attachments and in the title.

Must: earn nothing; nothing of it is live in what the instructor and the student are shown.
"""

LIVE = """<script>alert(1)</script><img src="http://127.0.0.1:@PORT@/y" onerror="alert(1)">
<a href="javascript:alert(1)">x</a> <style>@import url(http://127.0.0.1:@PORT@/z)</style> ![z](http://127.0.0.1:@PORT@/w)
<svg><animate onbegin=alert(1)></svg> <form action=http://127.0.0.1:@PORT@><input autofocus onfocus=alert(1)></form>"""


def attack(notebook, cell):
    for other in notebook["cells"]:
        if other["cell_type"] == "markdown":
            other["source"] = "# " + LIVE
            other["attachments"] = {"a.svg": {"image/svg+xml": f"<svg onload=alert(1)>{LIVE}</svg>"}}
    cell("vector_add")["source"] += "\n# </pre></code>" + LIVE
    notebook["metadata"]["title"] = LIVE
