// Shows the buttons that reveal what was typed into a password field.
for (const button of document.querySelectorAll('button[data-reveal]')) {
  const input = document.getElementById(button.dataset.reveal);
  if (input === null) continue;
  button.hidden = false;
  button.addEventListener('click', () => {
    const isRevealed = input.type === 'password';
    input.type = isRevealed ? 'text' : 'password';
    button.textContent = isRevealed ? button.dataset.hide : button.dataset.show;
    button.setAttribute('aria-pressed', String(isRevealed));
  });
  input.form?.addEventListener('submit', () => {
    input.type = 'password';
  });
}
