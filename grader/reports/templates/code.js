"use strict";
// A click on the number of a line copies the command that comments on it.
document.addEventListener("click", (event) => {
  const number = event.target.closest("a.lineno");
  const code = number && number.closest("[data-command]");
  if (!code) return;
  event.preventDefault();
  let where = "";
  if (location.protocol === "file:") {
    const folder = decodeURIComponent(location.pathname).replace(/\/code\/[^/]*$/, "");
    where = ` --in '${folder.replaceAll("'", "'\\''")}'`;
  }
  const command = `${code.dataset.command}${number.textContent.trim()}${where} ""`;
  const said = document.getElementById("copied");
  const shown = document.createElement("code");
  shown.textContent = command;
  const tell = (how) => said.replaceChildren(how, shown);
  navigator.clipboard.writeText(command).then(() => tell("Copied: "), () => tell("Copy this: "));
});
