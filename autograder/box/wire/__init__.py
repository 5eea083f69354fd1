"""The wire: typed records for everything that crosses the wall of the box. Both ends use this package.

requests  the judge's requests as records, and where tensors and results lie in the memory of a job
answers   the reports and traces that come back, and the checks on them; records as JSON and back

Two processes meet here. The judge's process encodes requests and parses answers. The box's process decodes
requests and encodes answers; it runs learners' code, so the judge trusts none of its bytes.
"""
