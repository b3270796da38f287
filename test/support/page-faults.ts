/**
 * A script whose value is what is out of place on the page that is open, each as one line: what hangs out of the window,
 * what is cut off, words of up to 20 characters that are broken, and short things of table rows that are not in one line.
 */
export const pageFaults = `(() => {
  const faults = [];
  const root = document.documentElement;
  const textOf = (element) => (element.textContent || element.getAttribute('name') || element.outerHTML).trim().slice(0, 30);
  const describe = (element) => element.tagName.toLowerCase() + '.' + element.className + ' "' + textOf(element) + '"';
  const linesOf = (node, from, to) => {
    const range = document.createRange();
    if (from === undefined) range.selectNodeContents(node);
    else { range.setStart(node, from); range.setEnd(node, to); }
    const tops = [];
    for (const { top, height } of range.getClientRects()) {
      if (height > 0 && !tops.some((other) => Math.abs(other - top) < 6)) tops.push(top);
    }
    return tops.length;
  };
  if (root.scrollWidth > root.clientWidth) faults.push('is ' + (root.scrollWidth - root.clientWidth) + ' px too wide');
  for (const element of document.body.querySelectorAll('*')) {
    if (element.closest('svg, .skip, .visually-hidden') || !element.checkVisibility()) continue;
    const { left, right, width } = element.getBoundingClientRect();
    const isLeast = element.childElementCount === 0 || element.matches('.button');
    // The line of tabs scrolls.
    const isReached = element.closest('.tabs') !== null;
    if (isLeast && width > 0 && !isReached && (left < -1 || right > root.clientWidth + 1)) faults.push('outside: ' + describe(element));
    // The menu says the whole name, the page for logging in the whole title; an icon has three letters at most.
    if (element.matches('input, select, textarea, progress, .user-button span, .site-header .brand span, .service-icon')) continue;
    const { overflowX, overflowY } = getComputedStyle(element);
    const isCut = (overflow, inner, outer) => /hidden|clip/.test(overflow) && inner > outer + 1;
    if (isCut(overflowX, element.scrollWidth, element.clientWidth) || isCut(overflowY, element.scrollHeight, element.clientHeight)) {
      faults.push('cut off: ' + describe(element));
    }
    if (element.matches('td time, td .button, .status') && linesOf(element) > 1) faults.push('not in one line: ' + describe(element));
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.checkVisibility() || node.parentElement.closest('.visually-hidden') || linesOf(node) < 2) continue;
    for (const { 0: token, index } of node.data.matchAll(/\\S+/g)) {
      for (const { 0: word, index: start } of token.matchAll(/[\\p{L}\\p{N}]+/gu)) {
        // An address may be broken, its port may not.
        if (token.length > 20 && !(/^\\d+$/.test(word) && /:\\/\\/.+:$/.test(token.slice(0, start)))) continue;
        const from = index + start;
        if (linesOf(node, from, from + word.length) > 1) faults.push('broken: ' + word);
      }
    }
  }
  return faults;
})()`;
