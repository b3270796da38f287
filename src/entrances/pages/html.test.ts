import { describe, expect, test } from 'vitest';
import { english, Language } from '../../platform/texts/language.ts';
import { text } from '../../platform/texts/text.ts';
import { Html, html, joinHtml, renderHtml, safeHref, unsafeHtml } from './html.ts';

describe('html', () => {
  test('escapes text', () => {
    expect(renderHtml(html`<p>${'<script>alert("x")</script> & \'y\''}</p>`)).toBe(
      '<p>&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;y&#39;</p>',
    );
  });

  test('keeps a value inside its quoted attribute', () => {
    expect(renderHtml(html`<input value="${'" onfocus="alert(1)'}">`)).toBe(
      '<input value="&quot; onfocus=&quot;alert(1)">',
    );
  });

  test('shows no control characters, which no document may have', () => {
    const typed = 'a\u0000b\u001b[31mc\u007fd\u0085e\tf\r\ng';
    expect(renderHtml(html`<p title="${typed}">${typed}</p><a href="${'/x\u0001'}">`)).toBe(
      '<p title="a\ufffdb\ufffd[31mc\ufffdd\ufffde\tf\r\ng">a\ufffdb\ufffd[31mc\ufffdd\ufffde\tf\r\ng</p><a href="/x\ufffd">',
    );
  });

  test('refuses a value in an attribute without quotes', () => {
    expect(() => html`<input value=${'x'}>`).toThrow('needs quotes');
  });

  test('shows nothing for false, null and undefined, and zero as a number', () => {
    expect(renderHtml(html`<b>${false}${null}${undefined}${0}</b>`)).toBe('<b>0</b>');
  });

  test('does not escape markup twice', () => {
    const inner = html`<b>${'&'}</b>`;
    expect(renderHtml(html`<p>${inner}</p>`)).toBe('<p><b>&amp;</b></p>');
  });

  test('joins arrays, escaping each item', () => {
    expect(renderHtml(html`<ul>${['<', html`<li></li>`, ['>']]}</ul>`)).toBe(
      '<ul>&lt;<li></li>&gt;</ul>',
    );
  });

  test('does not take an object that only looks like markup', () => {
    const lookalike = { toString: () => '<b>' } as unknown as Html;
    expect(renderHtml(html`${lookalike}`)).toBe('&lt;b&gt;');
    expect(() => new Html(Symbol('Html'), { strings: ['<b>'], holes: [] })).toThrow(TypeError);
  });

  test.for(['href', 'src', 'action', 'formaction'])('refuses a script address in %s', (name) => {
    const rendered = {
      href: html`<a href="${'javascript:alert(1)'}">`,
      src: html`<img src="${'javascript:alert(1)'}">`,
      action: html`<form action="${'javascript:alert(1)'}">`,
      formaction: html`<button formaction="${'javascript:alert(1)'}">`,
    }[name];
    expect(rendered?.toString()).toContain(`${name}="#"`);
  });

  test('escapes an address that it admits', () => {
    expect(renderHtml(html`<a href="${'/x?a=1&b="2"'}">`)).toBe(
      '<a href="/x?a=1&amp;b=&quot;2&quot;">',
    );
  });

  test('takes a constant as the markup it is', () => {
    expect(renderHtml(html`<p>${unsafeHtml('<br>')}</p>`)).toBe('<p><br></p>');
  });

  test('writes texts in the language in which it is rendered, in attributes too', () => {
    const link = html`<a href="/x">${text`Log in`}</a>`;
    const page = html`<p title="${text`Log in`}">${text`Error ID for support: ${link}.`}</p>`;
    const german = new Language(
      'de',
      new Map([
        ['Log in', '<Anmelden> & "los"'],
        ['Error ID for support: {0}.', '{0}: nennen'],
      ]),
    );
    const shown = '&lt;Anmelden&gt; &amp; &quot;los&quot;';
    expect(renderHtml(page, german)).toBe(
      `<p title="${shown}"><a href="/x">${shown}</a>: nennen</p>`,
    );
    expect(String(page)).toContain('Error ID for support: <a href="/x">Log in</a>.');
  });

  test('keeps what it escapes escaped where a text holds it', () => {
    expect(String(html`${text`Type ${'<b>'} to confirm`}`)).toBe('Type &lt;b&gt; to confirm');
    expect(text`Type ${html`<b>${'<'}</b>`} to confirm`.in(english)).toBe('Type < to confirm');
  });

  test('puts a separator between pieces', () => {
    expect(renderHtml(joinHtml(['a', '<', 'c'], html`<br>`))).toBe('a<br>&lt;<br>c');
  });
});

describe('safeHref', () => {
  test.for(['/hub/home', 'x/y', '?a=1', '#top', 'https://example.org/', 'mailto:a@example.org'])(
    'admits %s',
    (address) => {
      expect(safeHref(address)).toBe(address);
    },
  );

  test.for([
    'javascript:alert(1)',
    ' JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    '\u0001javascript:alert(1)',
    'data:text/html,<script>',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://example.org/1',
    'https://[',
  ])('refuses %j', (address) => {
    expect(safeHref(address)).toBeUndefined();
  });
});
