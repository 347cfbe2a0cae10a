"""Make PDFs of lines of text."""

from __future__ import annotations

from io import BytesIO

from reportlab.pdfgen.canvas import Canvas


def pdf(*pages: list[str]) -> bytes:
    """Return a PDF with a page for each list of lines."""
    file = BytesIO()
    canvas = Canvas(file)
    for lines in pages:
        for number, line in enumerate(lines):
            canvas.drawString(50, 750 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()
