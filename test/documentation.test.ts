import { randomBytes } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listCommands } from '../scripts/reference/command-line-page.ts';
import { listSettings } from '../scripts/reference/configuration-page.ts';
import { errorCodes } from '../scripts/reference/errors-page.ts';
import { jupyterHubOperations } from '../scripts/reference/jupyterhub-operations.ts';
import { counterpartOf } from '../scripts/reference/jupyterhub-page.ts';
import { listMetrics } from '../scripts/reference/metrics-page.ts';
import { referencePages } from '../scripts/reference/pages.ts';
import { loadCheckedConfig } from '../src/entrances/cli/checked-config.ts';
import { scopeDefinitions } from '../src/identity/rbac/scope-definitions.ts';
import * as cookieNames from '../src/platform/protocol/cookie-names.ts';
import { requires } from './support/requires.ts';
import { selfSigned } from './support/tls-front.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const pages = globSync(
  [
    'README.md',
    'SECURITY.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'docs/**/*.md',
    'examples/**/*.md',
  ],
  { cwd: root },
);

test("each test of the OpenID Foundation's lists names one here that there is", () => {
  const page = read('docs/reference/openid-conformance.md');
  const rows = [...page.matchAll(/^\| `(oidcc-[\w-]+)` \| (?:`([^`]+)`: (.+?))? ?\| .+ \|$/gm)];
  expect(rows.length).toBe(page.match(/^\| `/gm)?.length);
  for (const [, id, file, name = ''] of rows) {
    if (file !== undefined) expect(read(`test/${file}`), id).toContain(name.replaceAll('\\|', '|'));
  }
});

describe('the reference', () => {
  test('is as the source makes it; npm run docs writes it again', async () => {
    for (const [path, text] of await referencePages()) expect(read(path), path).toBe(text);
  });

  test('has a row for every setting, with its meaning', async () => {
    const page = read('docs/reference/configuration.md');
    const settings = [...(await listSettings()).values()].flat();
    expect(settings.length).toBeGreaterThan(100);
    expect(settings.filter(({ path }) => !page.includes(`| \`${path}\` |`))).toEqual([]);
    expect(settings.filter(({ meaning }) => meaning === '').map(({ path }) => path)).toEqual([]);
  });

  test('has a row for every scope, error and metric, and a heading for every command', async () => {
    const rows: readonly (readonly [string, readonly string[]])[] = [
      ['scopes.md', Object.keys(scopeDefinitions).map((name) => `| \`${name}\` |`)],
      ['errors.md', errorCodes.map((code) => `| \`${code}\` |`)],
      ['metrics.md', listMetrics().map(({ name }) => `| \`${name}\` |`)],
      ['command-line.md', listCommands().map(({ name }) => `### ${name}\n`)],
    ];
    for (const [file, expected] of rows) {
      const page = read(`docs/reference/${file}`);
      expect(
        expected.filter((row) => !page.includes(row)),
        file,
      ).toEqual([]);
    }
  });

  test('is right about each operation of JupyterHub', () => {
    const isGone = ({ path }: { readonly path: string }) => path.startsWith('/authorizations/');
    const keys = jupyterHubOperations.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(jupyterHubOperations).toHaveLength(64);
    for (const [index, operation] of jupyterHubOperations.entries()) {
      const { scopes, statuses, difference, isUnpublished, test: named } = operation;
      const here = counterpartOf(operation);
      const key = keys[index];
      if (isUnpublished !== true) expect(here, key).toBeDefined();
      const answers = Object.keys(here?.answers ?? {}).map(Number);
      const declared: readonly string[] =
        typeof here?.scopes === 'string' ? [] : (here?.scopes ?? []);
      const isSame =
        statuses.every((status) => answers.includes(status)) &&
        scopes.every((scope) => declared.includes(scope)) &&
        (scopes.length > 0 || declared.length === 0);
      if (difference === undefined) expect(isSame, key).toBe(true);
      if (isGone(operation)) expect(answers, key).toEqual([410]);
      else if (here !== undefined && key !== 'PATCH /proxy') {
        expect(Math.min(...answers), key).toBeLessThan(400);
      }
      const [file, title] = named;
      expect(read(`test/${file}`), `${key}: ${file}`).toContain(title);
    }
  });

  test('says every variable that a service and a server get, and every cookie', () => {
    const variables = [
      'src/workloads/services/service-environment.ts',
      'src/workloads/servers/server-environment.ts',
      'src/platform/http/origin-variables.ts',
    ]
      .flatMap((path) => [...read(path).matchAll(/^ {4}([A-Z][A-Z_]+)[:,]/gm)])
      // What has no prefix tells other programs who the user is.
      .filter(([, name]) => name !== 'LOGNAME')
      .map(([, name]) => `HUB_${name}`);
    expect(variables.length).toBeGreaterThan(20);
    const page = read('docs/reference/environment-variables.md');
    expect(variables.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
    const cookies = read('docs/reference/cookies.md');
    const names = Object.values(cookieNames).filter((name) => typeof name === 'string');
    expect(names.length).toBeGreaterThan(10);
    // Of some there are several at once, each with a suffix.
    expect(names.filter((name) => !new RegExp(`\`${name}(?:-<id>)?\``).test(cookies))).toEqual([]);
  });
});

describe('the pages', () => {
  test('link only to what is there', () => {
    const broken = pages.flatMap((page) =>
      linksOf(read(page))
        .filter((link) => !/^[a-z]+:/.test(link))
        .filter((link) => !leadsSomewhere(page, link))
        .map((link) => `${page}: ${link}`),
    );
    expect(broken).toEqual([]);
  });

  test('name the tests of each boundary of the threat model', () => {
    const [, table = ''] =
      /^## Boundaries.*\n\n\|.*\n\|.*\n((?:\|.*\n)+)/m.exec(
        read('docs/explanation/threat-model.md'),
      ) ?? [];
    const rows = table.trim().split('\n');
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter((row) => !/\]\([^)]*\.test\.ts\) \|$/.test(row))).toEqual([]);
  });

  test('are each linked from another page', () => {
    const targets = new Set(
      pages.flatMap((page) =>
        linksOf(read(page)).map((link) => resolve(root, dirname(page), link.replace(/#.*/, ''))),
      ),
    );
    const lonely = pages.filter(
      (page) => page.startsWith('docs/') && !targets.has(join(root, page)),
    );
    expect(lonely).toEqual([]);
  });

  /** Those for people who work on the source. */
  const guides = [
    'CONTRIBUTING.md',
    'docs/explanation/life-of-a-request.md',
    'docs/explanation/the-hub-and-root.md',
  ];
  const codeIn = (page: string) =>
    [...read(page).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);

  test.for(guides)('name files and folders that are there: %s', (page) => {
    const named = codeIn(page).filter((code) =>
      /^(?:bench|docs|fixtures|plugins|scripts|src|test)\/[\w./*-]*$/.test(code),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => globSync(path, { cwd: root }).length === 0)).toEqual([]);
  });

  test.for(guides)('name functions and commands that are there: %s', (page) => {
    const source = globSync(['src/**/*.ts', 'test/support/*.ts'], { cwd: root })
      .map(read)
      .join('\n');
    const scripts = Object.keys(JSON.parse(read('package.json')).scripts);
    const code = codeIn(page);
    const functions = code.flatMap((each) => /^(\w+)\(\)$/.exec(each)?.[1] ?? []);
    expect(functions.filter((name) => !new RegExp(`\\b${name}[<(]`).test(source))).toEqual([]);
    const commands = code.flatMap((each) => [...each.matchAll(/npm run ([\w:]+)/g)]);
    expect(commands.map(([, name = '']) => name).filter((name) => !scripts.includes(name))).toEqual(
      [],
    );
  });

  const snippets = pages.flatMap((page) =>
    [...read(page).matchAll(/^```jsonc?\n\/\/ hub\.config\.json.*\n([\s\S]*?)^```$/gm)].map(
      ([, text = ''], index) => ({ page, place: index + 1, text }),
    ),
  );

  test.for(snippets)(
    'show a configuration that the hub takes: $page, $place',
    async (snippet, { skip }) => {
      await using folder = await createFolder();
      for (const [, certificate = '', keyFile = ''] of snippet.text.matchAll(
        /"certificate": "([^"]*)", "key": "([^"]*)"/g,
      )) {
        skip(!requires('openssl'));
        const { cert, key } = selfSigned(['hub.example.org']);
        await folder.write(certificate, `${cert}`);
        await folder.write(keyFile, `${key}`);
        const [, authorities] = /"client_authorities": "([^"]*)"/.exec(snippet.text) ?? [];
        if (authorities !== undefined) await folder.write(authorities, `${cert}`);
      }
      await folder.write('hub.config.json', snippet.text);
      const secret = () => randomBytes(32).toString('hex');
      for (const [, file = ''] of snippet.text.matchAll(/"file": "([^"]*)"/g)) {
        await folder.write(file, secret());
      }
      const names = [...snippet.text.matchAll(/"env": "([^"]*)"/g)].map(([, name = '']) => name);
      const env = Object.fromEntries(
        names.map((name) => [
          name,
          name.endsWith('DATABASE_URL') ? 'postgresql://hub:secret@db/hub' : secret(),
        ]),
      );
      await expect(
        loadCheckedConfig({ file: join(folder.path, 'hub.config.json'), env }),
      ).resolves.toBeDefined();
    },
  );

  test('show many configurations', () => {
    expect(snippets.length).toBeGreaterThan(12);
  });
});

function linksOf(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, 'code');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const file = path === '' ? join(root, page) : resolve(root, dirname(page), path);
  if (!existsSync(file)) return false;
  if (anchor === undefined) return true;
  return headingsOf(readFileSync(file, 'utf8')).includes(anchor);
}

/** The anchors that headings get where Markdown is shown. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

async function createFolder() {
  const path = await mkdtemp(join(tmpdir(), 'hub-docs-'));
  return {
    path,
    async write(name: string, text: string): Promise<void> {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), text, { mode: 0o600 });
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}
