import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  readErrors,
  readSource,
  sentencesIn,
  sourceFiles,
  textsIn,
  textsOfSource,
  untranslatedIn,
  withoutPages,
} from '../scripts/texts/extract.ts';
import { loadAssets } from '../src/entrances/pages/assets/assets.ts';
import { renderHtml } from '../src/entrances/pages/html.ts';
import { problemOf } from '../src/platform/texts/catalogue.ts';
import { BracketLanguage, unbracketedIn } from './support/bracket-language.ts';
import { samplePages } from './support/sample-pages.ts';

const german = join(import.meta.dirname, '..', 'src', 'platform', 'texts', 'languages', 'de');
const files = globSync('*.json', { cwd: german }).map((name) => ({
  name,
  entries: Object.entries<string>(JSON.parse(readFileSync(join(german, name), 'utf8'))),
}));
const texts = textsOfSource();

test('every text has a German translation', () => {
  const translated = new Set(files.flatMap(({ entries }) => entries.map(([key]) => key)));
  expect([...texts.keys()].filter((key) => !translated.has(key))).toEqual([]);
});

test('German translates nothing but what there is, rightly, in one way, and in order', () => {
  const known = new Map<string, string>();
  const problems = files.flatMap(({ name, entries }) =>
    entries.flatMap(([key, translation]) => {
      const before = known.get(key);
      known.set(key, translation);
      if (!texts.has(key)) return `${name}: nothing in the source is called ${key}`;
      if (before !== undefined && before !== translation)
        return `${name}: ${key} is also ${before}`;
      const problem = problemOf(key, translation);
      return problem === undefined ? [] : `${name}: ${key} ${problem}`;
    }),
  );
  expect(problems).toEqual([]);
  for (const { name, entries } of files) {
    const keys = entries.map(([key]) => key);
    expect(keys, name).toEqual([...keys].sort());
  }
});

test('no markup has words that are in no text', () => {
  for (const path of sourceFiles()) {
    expect(untranslatedIn(path, readSource(path)), path).toEqual([]);
  }
});

test('times in texts are written as the language does', () => {
  const found = sourceFiles().flatMap((path) =>
    (readSource(path).match(/\btext`[^`]*\.toISOString\(\)[^`]*`/g) ?? []).map(
      (text) => `${path}: ${text}`,
    ),
  );
  expect(found).toEqual([]);
});

/** Where errors take what they say from, which is a text there. */
const saidRemotely: Readonly<Record<string, string>> = {
  'identity/accounts/first-administrator.ts':
    'the authenticator says what is wrong with a password',
  'identity/accounts/give-access.ts': 'another error says it, with another code',
  'identity/accounts/invitations.ts': 'the authenticator says what is wrong with a password',
  'identity/accounts/role-administration.ts': 'definitionProblem and fixedMembers of the same file',
  'identity/accounts/user-imports.ts': 'judge of the same file',
  'traffic/gateway/forward-auth.ts': 'another error says it, with another code',
  'platform/http/answer.ts': 'error-page-renderer.ts',
  'cluster/instances/channel-caller.ts': 'another instance says it',
  'identity/oauth/endpoints/authorization-request.ts': 'badRequest of the same file',
  'operations/account.ts': 'the authenticator says what is wrong with a password',
  'operations/authorizations.ts': 'one answer for all of them, in the same file',
  'operations/perform.ts': 'what programs sent, which forms cannot',
  'operations/share-pages.ts': 'another error says it, with another code',
  'entrances/pages/account/account-routes.ts': 'newPasswordProblems of pages/login',
  'entrances/pages/account/token-routes.ts': 'requestedScopes of token-form.ts',
  'entrances/pages/login/invitation-routes.ts':
    'the authenticator says what is wrong with a password',
  'entrances/pages/login/set-up-routes.ts': 'the authenticator says what is wrong with a password',
  'entrances/pages/services/not-ready-renderer.ts': 'hintOf of the same file',
  'traffic/proxy/websocket-forwarder.ts': 'tooMany of the same file',
  'identity/rbac/scope.ts': 'readScope of the same file',
  'workloads/servers/address-reports.ts':
    'the spawner says why it refuses an address, to the server alone',
  'workloads/servers/server-accounts.ts': 'serverAccountProblem of processes/system-user.ts',
  'workloads/servers/server-start.ts': 'an earlier error says it, with another code',
  'workloads/servers/server-unit.ts': 'start-texts.ts',
  'workloads/servers/server-watch.ts': 'stored by the instance that started the server',
  'spawning/docker/engine-errors.ts': 'refusals and pullSentence of the same file',
  'spawning/kubernetes/api-errors.ts': 'refusals of the same file',
  'spawning/kubernetes/await-pod.ts': 'hopelessness of pod-progress.ts',
  'spawning/kubernetes/cluster.ts': 'configProblem of the same file',
  'spawning/kubernetes/kubernetes-spawner.ts': 'requireKnown of the same file',
  'spawning/kubernetes/server-pods.ts': 'sentenceOf of api-errors.ts',
  'platform/store/node-sqlite-dialect.ts': 'sqlite-database.ts',
  'identity/users/system-account-store.ts': 'a text that the caller of taken gives',
  'identity/users/user-info.ts': 'the problems of the same file',
};

test('errors that reach a page say texts', () => {
  const found = sourceFiles()
    .filter((path) => !withoutPages.some(([place]) => place.test(path)))
    .filter((path) => readErrors(path, readSource(path)).length > 0);
  expect(found.toSorted()).toEqual(Object.keys(saidRemotely).toSorted());
});

/** Files in which every sentence is for people, but for those that a pattern says. */
const spokenFiles =
  /^spawning\/(?!processes\/)|^workloads\/servers\/(?!.*-store\.ts$)|^identity\/accounts\/role-administration\.ts$|^identity\/rbac\/scope\.ts$|^identity\/users\/user-info\.ts$|^identity\/oauth\/endpoints\/authorization-request\.ts$|^spawning\/processes\/(?:launch-check|port-owner|readiness-probe|supervised-process|system-user)\.ts$|^workloads\/services\/(?:external|managed|owned)-service\.ts$/;

const notForPeople: readonly (readonly [path: RegExp, why: string])[] = [
  [/\/examine-\w+\.ts$/, 'findings of hub doctor'],
  [/-(?:options|plugin)\.ts$/, 'problems of the configuration, which hub check prints'],
  [/\/job-script\.ts$/, 'a shell script'],
];

/** Sentences for the log and the output of servers, and what no one reads: reasons to give up work. */
const unread: ReadonlySet<string> = new Set([
  'the engine of a server does not say whether it runs; it counts as running',
  'could not clean up after a server yet',
  'could not record yet that a server is stopped',
  'that was not used',
  'that has run as long as it may',
  'The hub is stopping.',
  'a process of the server was ended: {0}',
  'the server could not start another process: its limit is {0}',
  'the server is ended: {0}',
  // Of a partition, in hub doctor.
  'is not there',
]);

test('what spawners say of a server is in a text', () => {
  const found = sourceFiles()
    .filter((path) => spokenFiles.test(path) && !notForPeople.some(([place]) => place.test(path)))
    .flatMap((path) => sentencesIn(path, readSource(path)).map((said) => `${path}: ${said}`));
  expect(found.filter((each) => !unread.has(each.slice(each.indexOf(': ') + 2)))).toEqual([]);
});

test('no page has words that are in no text', async () => {
  const assets = await loadAssets({ staticUrl: '/hub/static/' });
  // What the pages are about is the same in every language, and marked like a text.
  const pages = samplePages(assets, (plausible) => `⟦${plausible}⟧`);
  const brackets = new BracketLanguage(texts.keys());
  for (const [name, page] of Object.entries(pages)) {
    // An address may have places to break.
    const shown = renderHtml(page, brackets).replaceAll('<wbr>', '');
    expect(unbracketedIn(shown), name).toEqual([]);
  }
});

test('words outside texts are found where they stand', () => {
  const inTag = '$' + '{url}';
  const code = `html\`<a href="${inTag}" title="Go there">${inTag} see <b>all</b></a>\``;
  expect(untranslatedIn('x.ts', code)).toEqual(['… see', 'all', 'Go there']);
  expect(untranslatedIn('x.ts', `html\` required\`; html\`<p class="a">${inTag}</p>\``)).toEqual(
    [],
  );
  const from = `import { message, text } from '../texts/text.ts';`;
  expect([
    ...textsIn('x.ts', `${from} text\`a \${b} c\`; message('d', {}, { context: 'e' })`),
  ]).toEqual(['a {0} c', 'e::d']);
  expect(() => textsIn('x.ts', `${from} message(b)`)).toThrow('written out');
});
