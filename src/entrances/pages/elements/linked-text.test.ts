import { expect, test } from 'vitest';
import { linkedText } from './linked-text.ts';

const link = (address: string) => `<a href="${address}" rel="noopener noreferrer">${address}</a>`;

test.each([
  ['See https://example.org/a?b=1.', `See ${link('https://example.org/a?b=1')}.`],
  ['(http://example.org)', `(${link('http://example.org')})`],
  [
    'https://a.example https://b.example/',
    `${link('https://a.example')} ${link('https://b.example/')}`,
  ],
  ['javascript:alert(1)', 'javascript:alert(1)'],
  ['data:text/html,x ftp://x', 'data:text/html,x ftp://x'],
  ['<a href="https://x.example">', `&lt;a href=&quot;${link('https://x.example')}&quot;&gt;`],
  ['https://', 'https://'],
  ['https://[', 'https://['],
])('%s', (text, markup) => {
  expect(String(linkedText(text)).replaceAll('&#34;', '&quot;')).toBe(markup);
});
