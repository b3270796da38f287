import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { env } from 'node:process';
import { defineConfig, type MarkdownRenderer } from 'vitepress';

const root = join(import.meta.dirname, '..', '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
};
/** Where it is served: a folder for each version, such as `/0.1/`. */
const base = env['SITE_BASE'] ?? '/';
/** Addresses of further versions, such as `https://docs.example.org/0.1/`, with blanks between them. */
const others = (env['SITE_VERSIONS'] ?? '').split(' ').filter((url) => url !== '');

const titleOf = (path: string) =>
  /^# (.+)$/m.exec(readFileSync(join(root, path), 'utf8'))?.[1]?.replaceAll('`', '') ?? path;
const item = (path: string, text = titleOf(path)) => ({
  text,
  link: `/${path.replace(/\.md$/, '')}`,
});

/** All pages of a folder of `docs/`, as files are called. */
function pagesOf(folder: string) {
  return readdirSync(join(root, 'docs', folder))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .map((name) => item(`docs/${folder}/${name}`));
}

/** The groups of the list of how-tos, with what it calls them. */
function howTos() {
  const list = readFileSync(join(root, 'docs/how-to/README.md'), 'utf8');
  return [...list.matchAll(/^## (.+)\n([\s\S]*?)(?=^## |$(?![\s\S]))/gm)].map(
    ([, text = '', body = '']) => ({
      text,
      collapsed: true,
      items: [...body.matchAll(/^- \[([^\]]+)\]\(([^)]+\.md)\)/gm)].map(([, name, file]) =>
        item(`docs/how-to/${file}`, name),
      ),
    }),
  );
}

/** Anchors as where the pages are read as files. */
const slugify = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');

const isPage = (path: string) =>
  /^(?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md$|^(?:docs|examples)\/.*\.md$/.test(path);

/** Files of the project that pages lead to, and that are no pages. */
const sources = new Set<string>();
const addressOfSource = (path: string) => `${base}files/${path}.txt`;

/** Leads to pages as the site has them, and to other files of the project as text. */
function leadToPages(markdown: MarkdownRenderer): void {
  markdown.core.ruler.after('inline', 'links', ({ tokens, env: { relativePath } }) => {
    for (const token of tokens.flatMap((each) => [each, ...(each.children ?? [])])) {
      // A bare name would be one of a package.
      if (token.type.startsWith('html_'))
        token.content = token.content.replaceAll(/(src(?:set)?=")(?=\w+\/)/g, '$1./');
      const href = token.type === 'link_open' ? token.attrGet('href') : null;
      if (href === null || /^(?:[a-z]+:|#|\/)/.test(href)) continue;
      const [path = '', anchor] = href.split('#');
      const source =
        relativePath === 'index.md' ? 'README.md' : relativePath.replace(/index\.md$/, 'README.md');
      const found = posix.normalize(posix.join(posix.dirname(source), decodeURIComponent(path)));
      if (!existsSync(join(root, found)))
        throw new Error(`${source} leads to ${found}, which is not there`);
      if (isPage(found)) {
        const page = `/${found.replace(/README\.md$/, 'index.md')}`;
        token.attrSet('href', anchor === undefined ? page : `${page}#${anchor}`);
      } else {
        sources.add(found);
        token.attrSet('href', addressOfSource(found));
        token.attrSet('target', '_self');
      }
    }
  });
}

/** A folder is the list of what is in it. */
function writeSource(path: string, outDir: string): void {
  const to = join(outDir, 'files', `${path}.txt`);
  mkdirSync(dirname(to), { recursive: true });
  const from = join(root, path);
  if (!statSync(from).isDirectory()) {
    copyFileSync(from, to);
    return;
  }
  const names = readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  writeFileSync(to, `${names.toSorted().join('\n')}\n`);
}

export default defineConfig({
  srcDir: root,
  srcExclude: [
    '**/node_modules/**',
    'site/**',
    'deploy/**',
    'src/**',
    'test/**',
    'bench/**',
    'foreign/**',
    'dist*/**',
    'release/**',
    'fixtures/**',
  ],
  rewrites: (path) => path.replace(/(^|\/)README\.md$/, '$1index.md'),
  outDir: env['SITE_DIRECTORY'] ?? join(root, 'dist-site'),
  base,
  title: 'Hub',
  description:
    'One program on one port: login, OAuth 2 provider, gateway, servers of users, shared services.',
  cleanUrls: false,
  lastUpdated: false,
  markdown: {
    anchor: { slugify },
    config: leadToPages,
    theme: { light: 'github-light', dark: 'github-dark' },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'How-tos', link: '/docs/how-to/' },
      { text: 'Reference', link: '/docs/reference/' },
      {
        text: version,
        items: [
          { text: 'Changes', link: '/CHANGELOG' },
          ...others.map((link) => ({ text: posix.basename(link), link })),
        ],
      },
    ],
    sidebar: [
      { text: 'Tutorial', items: pagesOf('tutorial') },
      { text: 'How-to', collapsed: false, items: howTos() },
      { text: 'Reference', collapsed: true, items: pagesOf('reference') },
      { text: 'Explanation', collapsed: true, items: pagesOf('explanation') },
      { text: 'Decisions', collapsed: true, items: pagesOf('decisions') },
    ],
  },
  buildEnd({ outDir }) {
    for (const path of sources) writeSource(path, outDir);
  },
});
