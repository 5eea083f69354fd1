"""Outputs that run when the instructor looks: HTML, JavaScript, SVG, LaTeX, widgets.

Must: earn nothing; nothing of it is live in what the instructor and the student are shown.
"""

def attack(notebook, cell):
    live = "<script>alert(1)</script><img src=http://127.0.0.1:@PORT@/x onerror=alert(1)><iframe srcdoc='<script>'>"
    data = {
        "text/html": live,
        "application/javascript": "alert(1)",
        "image/svg+xml": f"<svg onload=alert(1)>{live}</svg>",
        "text/markdown": f"[x](javascript:alert(1)) {live}",
        "text/latex": "$\\href{javascript:alert(1)}{x}$",
        "application/vnd.jupyter.widget-view+json": {"model_id": "x"},
        "text/plain": live,
    }
    for name in ("vector_add", "check-vector_add"):
        cell(name)["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": data}]
