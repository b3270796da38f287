import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  createScopeCatalogue,
  metascopes,
  type ScopeDefinition,
  scopeDefinitions,
  selfScopes,
} from './scope-definitions.ts';
import { scopeGroupTitles } from './scope-labels.ts';

const sourceDirectory = join(import.meta.dirname, '..', '..');

const directSubscopes: Record<string, readonly string[]> = {
  'admin:users': [
    'admin:auth_state',
    'delete:users',
    'read:roles:users',
    'read:users:info',
    'users',
  ],
  users: ['list:users', 'read:users', 'users:activity'],
  'list:users': ['read:users:name'],
  'read:users': ['read:users:activity', 'read:users:groups', 'read:users:name'],
  'users:activity': ['read:users:activity'],
  'read:roles': ['read:roles:groups', 'read:roles:services', 'read:roles:users'],
  'admin:servers': ['admin:server_state', 'servers'],
  servers: ['delete:servers', 'read:servers', 'start:servers'],
  'read:servers': ['read:users:name'],
  tokens: ['read:tokens'],
  'admin:groups': ['delete:groups', 'groups', 'read:roles:groups'],
  groups: ['list:groups', 'read:groups'],
  'list:groups': ['read:groups:name'],
  'read:groups': ['read:groups:name'],
  'admin:roles': ['read:roles'],
  'admin:services': ['list:services', 'read:roles:services', 'read:services'],
  'list:services': ['read:services:name'],
  'read:services': ['read:services:name'],
  shares: ['access:servers', 'groups:shares', 'read:shares', 'users:shares'],
  'users:shares': ['read:users:shares'],
  'groups:shares': ['read:groups:shares'],
};

const withoutSubscopes = [
  '(no_scope)',
  'self',
  'inherit',
  'admin-ui',
  'admin:auth_state',
  'delete:users',
  'read:users:name',
  'read:users:groups',
  'read:users:activity',
  'read:users:info',
  'read:roles:users',
  'read:roles:services',
  'read:roles:groups',
  'admin:server_state',
  'start:servers',
  'delete:servers',
  'read:tokens',
  'read:groups:name',
  'delete:groups',
  'read:services:name',
  'read:hub',
  'access:servers',
  'access:services',
  'read:shares',
  'read:users:shares',
  'read:groups:shares',
  'proxy',
  'shutdown',
  'gateway',
  'admin:announcements',
  'read:audit',
  'read:metrics',
];

describe('scopeDefinitions', () => {
  test('are the 53 scopes of the hub and no others', () => {
    const expected = [...Object.keys(directSubscopes), ...withoutSubscopes].sort();
    expect(Object.keys(scopeDefinitions).sort()).toEqual(expected);
    expect(expected).toHaveLength(53);
  });

  test.each(Object.entries(scopeDefinitions))(
    '%s has its sub-scopes and words for people',
    (name, definition) => {
      expect([...definition.subscopes].sort()).toEqual(directSubscopes[name] ?? []);
      for (const subscope of definition.subscopes)
        expect(scopeDefinitions).toHaveProperty([subscope]);
      expect(String(definition.description)).toMatch(/^[A-Z].*[^.]$/);
      expect(definition.help).toMatch(/^[A-Z].*\.$/);
      expect(Object.keys(scopeGroupTitles)).toContain(definition.group);
      if (definition.own !== undefined)
        expect(String(definition.own)).toMatch(/^[A-Z].*\byour?\b.*(?<!\.)$/);
      if (definition.risk !== undefined) expect(String(definition.risk)).toMatch(/^[A-Z].*\.$/);
    },
  );

  test('speak to their holder of all that self stands for', () => {
    for (const name of selfScopes)
      expect([name, scopeDefinitions[name].own]).not.toContain(undefined);
  });

  test('are each asked for somewhere in the source', () => {
    const source = globSync('**/*.ts', { cwd: sourceDirectory })
      .filter((path) => !path.startsWith('rbac/') && !path.endsWith('.test.ts'))
      .map((path) => readFileSync(join(sourceDirectory, path), 'utf8'))
      .join('\n');
    const isAskedFor = (name: string) => source.includes(`'${name}'`);
    for (const [name, definition] of Object.entries<ScopeDefinition>(scopeDefinitions)) {
      const { subscopes } = definition;
      if (metascopes.has(name)) continue;
      // Some only bring others along.
      const isOfUse = isAskedFor(name) || subscopes.some(isAskedFor);
      expect([name, isOfUse]).toEqual([name, true]);
    }
  });

  test('metascopes and what self stands for are all defined', () => {
    for (const name of [...metascopes, ...selfScopes])
      expect(scopeDefinitions).toHaveProperty([name]);
  });
});

describe('createScopeCatalogue', () => {
  test('works out sub-scopes of sub-scopes', () => {
    expect([...(createScopeCatalogue().withSubscopes('admin:users') ?? [])].sort()).toEqual([
      'admin:auth_state',
      'admin:users',
      'delete:users',
      'list:users',
      'read:roles:users',
      'read:users',
      'read:users:activity',
      'read:users:groups',
      'read:users:info',
      'read:users:name',
      'users',
      'users:activity',
    ]);
  });

  test('knows nothing of unknown names, not even those of every object', () => {
    const catalogue = createScopeCatalogue();
    for (const name of ['nonsense', 'toString', '__proto__']) {
      expect(catalogue.get(name)).toBeUndefined();
      expect(catalogue.withSubscopes(name)).toBeUndefined();
    }
  });

  test('adds custom scopes, circles among them included', () => {
    const catalogue = createScopeCatalogue({
      'custom:a:x': { description: 'X.', subscopes: ['custom:a:y'] },
      'custom:a:y': { description: 'Y.', subscopes: ['custom:a:x'] },
    });
    expect(catalogue.withSubscopes('custom:a:x')).toEqual(['custom:a:x', 'custom:a:y']);
    expect(catalogue.get('custom:a:y')?.description).toBe('Y');
    expect(catalogue.names).toContain('custom:a:x');
    expect(catalogue.names).toContain('read:users');
  });

  test('never lets a custom scope redefine a built-in one', () => {
    const catalogue = createScopeCatalogue({
      'read:hub': { description: 'Mine.', subscopes: ['admin:users'] },
    });
    expect(catalogue.withSubscopes('read:hub')).toEqual(['read:hub']);
  });
});
