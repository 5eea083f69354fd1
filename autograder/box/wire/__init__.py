"""The wire: typed records for everything that crosses the wall of the box. Both ends use this package.

requests  the judge's requests as records, and the memory of a job that holds them
layout    where tensors lie in the memory of a job, and where results lie in its output (imports torch)
answers   the reports and traces that come back, and the checks on them
codec     records as JSON and back

Two processes meet here. The judge's process encodes requests and parses answers. The box's process decodes
requests and encodes answers; it runs learners' code, so the judge trusts none of its bytes.
"""
