/* A button at each block of code that copies it; of lines with prompts and their output, the lines alone. */
"use strict";

addEventListener("DOMContentLoaded", () => {
  const PROMPT = /^(\$|>>>|\.\.\.)( |$)/;
  const commands = text => {
    const lines = text.split("\n"), found = [];
    let goesOn = false;
    for (const line of lines) {
      if (PROMPT.test(line) || goesOn) found.push(line.replace(PROMPT, ""));
      goesOn = (goesOn || PROMPT.test(line)) && line.endsWith("\\");
    }
    return /^(\$|>>>) /m.test(text) ? found.join("\n") : text;
  };
  const copy = async text => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  for (const block of document.querySelectorAll("div.highlight")) {
    const pre = block.querySelector("pre");
    if (!pre || block.closest(".cell_output, .highlight-text")) continue;
    const text = pre.textContent.trimEnd();
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this block");
    button.addEventListener("click", async () => {
      let said = "Copied";
      try { await copy(commands(text)); } catch { said = "Failed"; }
      button.textContent = said;
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    block.append(button);
  }
});
