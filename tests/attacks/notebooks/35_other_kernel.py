"""Ask for another kernel: a program of the learner's.

Must: earn nothing and leave the folder of canaries as it is.
"""

def attack(notebook, cell):
    command = ["/bin/sh", "-c", "touch @CANARY@/kernel"]
    notebook["metadata"]["kernelspec"] = {"name": "../../evil", "display_name": "x", "language": "x", "argv": command}
    notebook["metadata"]["language_info"] = {"name": "python", "nbconvert_exporter": "os.system"}
