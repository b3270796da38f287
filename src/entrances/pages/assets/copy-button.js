// Shows the copy buttons that the page holds hidden; without this file the text can be selected.
for (const button of document.querySelectorAll('button[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  // Browsers have no clipboard on pages that came over plain HTTP.
  if (source === null || navigator.clipboard === undefined) continue;
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener('click', () => {
    const text = source.dataset.copyText ?? source.textContent.trim();
    navigator.clipboard.writeText(text).then(
      () => say(button.dataset.copied),
      () => {
        getSelection()?.selectAllChildren(source);
        say(button.dataset.selected);
      },
    );
  });

  function say(word) {
    button.textContent = word;
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  }
}
