"""Verification: whether all parts of a table, from its metadata to its rows, fit together."""

from icefloe.progress import Listener, Progress, ProgressBar, Stage, listener_or_bar, silent
from icefloe.verification.codes import Code, Level, Severity
from icefloe.verification.report import Figures, Finding, VerificationReport
from icefloe.verification.verify import verify
