"""Spreadsheets, `.xlsx` and `.ods`: bounded before anything is parsed, then read with python-calamine.

archive       the parts of the zip file, unpacked within limits
scan          what both formats share: limits on cells and text, cells that have no usable value
xlsx, ods     which sheets a workbook has, and how far the cells of one of them reach
read          a workbook → a table of texts
"""
