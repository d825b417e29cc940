"""Plants: start-up files in the home folder."""

for name in (".bashrc", ".pythonrc.py", ".config-pytest"):
    open(f"@HOME@/{name}", "a").write("import os\n")
