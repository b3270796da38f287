import { parseFragment } from 'parse5';
import { expect, test } from 'vitest';
import { customFragment } from '../../src/entrances/pages/elements/brand.ts';
import { html, renderHtml } from '../../src/entrances/pages/html.ts';
import { createPageUrls } from '../../src/entrances/pages/page-urls.ts';
import { builtInBranding } from '../../src/platform/branding/branding.ts';
import {
  compileTemplate,
  formPlaceholder,
  type TemplateName,
  templatePlaceholders,
} from '../../src/platform/branding/template.ts';

const hostile = [
  `"'><script>alert(1)</script><img src=x onerror=alert(1)>`,
  '" onmouseover="alert(1)" x="',
  'javascript:alert(1)',
  '//evil.example/',
  '&quot;&#62;&lt;b&gt;',
  '{{login_url}}',
  '</p></div><form action=https://evil.example>',
];

const names = Object.keys(templatePlaceholders) as TemplateName[];
const cases = names.flatMap((name) =>
  templatePlaceholders[name]
    .filter((each) => each !== formPlaceholder && !each.endsWith('_url'))
    .map((placeholder) => ({ name, placeholder })),
);

async function nodesOf(name: TemplateName, placeholder: string, value: string) {
  const place = `{{${placeholder}}}`;
  const text =
    `<p title="a ${place}" aria-label="${place}">${place}</p><a href="/x/${place}?q=${place}#${place}">x</a>` +
    `<a href="https://example.org/${place}" rel="${place}">y</a>${name === 'login' ? '{{login_form}}' : ''}`;
  const { template, problems } = await compileTemplate(name, text);
  expect(problems).toEqual([]);
  const layout = {
    hubTitle: value,
    urls: createPageUrls('/'),
    assets: { url: (file: string) => file },
    now: new Date(0),
    user: { name: value, displayName: value, mayAdminister: false },
    requestId: value,
    branding: { current: { ...builtInBranding, templates: { [name]: template } } },
  };
  const values = { error_status: value, login_form: html`<i>form</i>` };
  const fragment = customFragment(layout as never, name, { values });
  return parseFragment(renderHtml(html`${fragment}`)).childNodes;
}

type Nodes = Awaited<ReturnType<typeof nodesOf>>;

/** Elements with the names of their attributes. */
const skeletonOf = (nodes: Nodes): unknown[] =>
  nodes.flatMap((node) =>
    'tagName' in node
      ? [[node.tagName, ...node.attrs.map(({ name }) => name), ...skeletonOf(node.childNodes)]]
      : [],
  );

const linksOf = (nodes: Nodes): string[] =>
  nodes.flatMap((node) =>
    'attrs' in node
      ? node.attrs.flatMap(({ name, value }) => (name === 'href' ? [value] : []))
      : [],
  );

test.for(cases)(
  'no value of {{$placeholder}} is markup or leads elsewhere in $name',
  async ({ name, placeholder }) => {
    const usual = await nodesOf(name, placeholder, 'ann');
    for (const value of hostile) {
      const nodes = await nodesOf(name, placeholder, value);
      expect(skeletonOf(nodes)).toEqual(skeletonOf(usual));
      const origins = linksOf(nodes).map((link) => new URL(link, 'https://hub.example/').origin);
      expect(origins).toEqual(['https://hub.example', 'https://example.org']);
      const encoded = encodeURIComponent(value);
      expect(linksOf(nodes)[0]).toBe(`/x/${encoded}?q=${encoded}#${encoded}`);
    }
  },
);
