import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Node, parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';

/**
 * Words that names of the program do not use, and the terms of the field that stand in their place. This is the only
 * place where they are listed; a pattern is for whole names.
 */
const retired: readonly (readonly [word: string | RegExp, instead: string])[] = [
  ['deed', 'action, audit event'],
  ['deeds', 'actions, audit events'],
  ['told', 'reported, published, disclosed'],
  ['untold', 'unreported'],
  ['stranger', 'foreign'],
  ['strangers', 'foreign'],
  ['door', 'server guard'],
  ['doors', 'server guards'],
  ['doored', 'guarded'],
  ['gatekeeper', 'access policy'],
  ['keeper', 'policy, reconciler'],
  ['elsewhere', 'remote'],
  ['lent', 'host packages'],
  ['lend', 'provide'],
  ['borrower', 'plugin module'],
  ['borrowers', 'plugin modules'],
  ['beyond', 'excess, missing scopes, past'],
  ['remembered', 'cached'],
  ['remembering', 'caching'],
  ['voided', 'invalidated'],
  ['unheard', 'unreceived'],
  ['arrivals', 'staging'],
  [/^\w*(?:Template|Sent|Small|Unsent)Pieces?$/, 'segment, chunk'],
  [/^\w*WaitingForms?$/i, 'pending form'],
  [/^(?:most|least|fewest|longest)[A-Z]\w*$/, 'max…, min…, with the unit'],
  [/^own(?:Text|Phrase|Part|Look|Labels)\w*$/, 'custom…, localized…'],
  [/^(?:Own|Told|Current|own|told|builtIn|read)?Look$/, 'branding'],
  [/^\w*Kept(?:Input|Form|Routes?)$/, 'saved…'],
  [/^\w*User?Marks?$/, 'status'],
  [
    /^(?:giveWayTo\w*|catchUpActivity|noteUse|noteOperation|hearReloads)$/,
    'remove…, flush…, record…, set…, on…',
  ],
];

/** Names that others gave: an option of the command line, and a parameter of Chromium. */
const foreignNames = new Set(['listensElsewhere', 'captureBeyondViewport']);

const root = join(import.meta.dirname, '..');
const files = globSync(['src/**/*.ts', 'plugins/**/*.ts', 'test/**/*.ts', 'scripts/**/*.ts'], {
  cwd: root,
});

function visit(node: unknown, seen: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if ('type' in node) seen(node as Node);
  for (const child of Object.values(node)) visit(child, seen);
}

function wordsOf(name: string): string[] {
  return name
    .split(/(?<=[a-z\d])(?=[A-Z])|[_$]/)
    .map((word) => word.toLowerCase())
    .filter((word) => word !== '');
}

/** What is wrong with a name; undefined when nothing is. */
function problemOf(name: string): string | undefined {
  // With low lines it is a column, a setting or a field of the API.
  if (foreignNames.has(name) || /[a-z]_[a-z]/.test(name)) return undefined;
  const words = wordsOf(name);
  const found = retired.find(([word]) =>
    typeof word === 'string' ? words.includes(word) : word.test(name),
  );
  return found && `${name}: say ${found[1]}`;
}

function namesIn(path: string, text: string): Set<string> {
  const names = new Set<string>();
  visit(parseSync(path, text).program, (node) => {
    if (node.type === 'Identifier' || node.type === 'PrivateIdentifier') names.add(node.name);
  });
  return names;
}

/** The constant texts of calls such as `log.info({ user }, 'login confirmed')`, and what templates begin with. */
function messagesIn(path: string, text: string): string[] {
  const messages: string[] = [];
  const take = (node: Node): void => {
    if (node.type === 'Literal' && typeof node.value === 'string') messages.push(node.value);
    if (node.type === 'TemplateLiteral') messages.push(node.quasis[0]?.value.raw ?? '');
    if (node.type === 'ConditionalExpression') {
      take(node.consequent);
      take(node.alternate);
    }
  };
  visit(parseSync(path, text).program, (node) => {
    if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return;
    const { object, property } = node.callee;
    const method = property.type === 'Identifier' ? property.name : '';
    if (!/^(?:trace|debug|info|warn|error|fatal)$/.test(method)) return;
    if (!/\b(?:log|logger)$/i.test(text.slice(object.start, object.end))) return;
    const last = node.arguments.at(-1);
    if (last !== undefined) take(last);
  });
  return messages;
}

function messageProblem(message: string): string | undefined {
  if (/^(?:an?|the) /i.test(message)) return `${message}: say it without an article`;
  const words: readonly string[] =
    message
      .replaceAll(/--[\w-]+/g, '')
      .toLowerCase()
      .match(/\p{L}+/gu) ?? [];
  const found = retired.find(([word]) => typeof word === 'string' && words.includes(word));
  return found && `${message}: say ${found[1]}`;
}

describe('the words of the field', () => {
  test('are those of names', () => {
    const problems = files.flatMap((path) =>
      [...namesIn(path, readFileSync(join(root, path), 'utf8'))].flatMap((name) => {
        const problem = problemOf(name);
        return problem === undefined ? [] : [`${path}: ${problem}`];
      }),
    );
    expect(problems).toEqual([]);
  });

  test('are those of files', () => {
    const problems = files.flatMap((path) =>
      path
        .split(/[/.]/)
        .flatMap((part) => part.split('-'))
        .flatMap((word) => problemOf(word) ?? [])
        .map((problem) => `${path}: ${problem}`),
    );
    expect(problems).toEqual([]);
  });

  test('are those of the log, whose events are constant and have no article', () => {
    const problems = files
      .filter((path) => /^(?:src|plugins)\//.test(path) && !path.endsWith('.test.ts'))
      .flatMap((path) =>
        messagesIn(path, readFileSync(join(root, path), 'utf8')).flatMap((message) => {
          const problem = messageProblem(message);
          return problem === undefined ? [] : [`${path}: ${problem}`];
        }),
      );
    expect(problems).toEqual([]);
  });

  test('are missed where they are missing', () => {
    const names = [
      'mostUsers',
      'isToldAlready',
      'ownText',
      'DoorAnswers',
      'longestName',
      'UserMark',
    ];
    expect(names.filter((name) => problemOf(name) === undefined)).toEqual([]);
    const fine = [
      'maxUsers',
      'isReported',
      'owner',
      'doorbell',
      'longest',
      'noteUser',
      'heard_at_ms',
      'bookmark',
    ];
    expect(fine.flatMap((name) => problemOf(name) ?? [])).toEqual([]);
    const text =
      "log.warn({ err }, isNew ? 'a request was refused' : `the hub`); other.info('the end');";
    expect(messagesIn('a.ts', text).map((each) => messageProblem(each) !== undefined)).toEqual([
      true,
      true,
    ]);
    expect(messageProblem('request refused')).toBeUndefined();
    expect(messageProblem('hub told to stop')).toBeDefined();
  });
});
