"""The rights that each function needs, read from the code, and those that it has, read from the template.

code → kinds → walk → reach → wants; stack says what is granted. tests/contract/test_rights.py holds the two together.
"""
