// Shows the copy buttons that the page holds hidden; without this file the text can be selected.
for (const button of document.querySelectorAll('button[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  if (source === null || navigator.clipboard === undefined) continue;
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.dataset.copyText ?? source.textContent.trim());
      button.textContent = 'Copied';
    } catch {
      getSelection()?.selectAllChildren(source);
      button.textContent = 'Selected';
    }
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  });
}
