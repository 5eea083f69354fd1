"""Return what no comparison expects: NaN, endless numbers, cycles.

Must: earn nothing.
"""



def bytes_moved(m, n, element_size):
    cycle = []
    cycle.append(cycle)
    return {"torch_read": float("nan"), "torch_written": 10**4000, "fused_read": cycle, "fused_written": bytes_moved}
