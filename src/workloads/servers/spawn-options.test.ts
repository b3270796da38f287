import { describe, expect, test } from 'vitest';
import type { SpawnerProfile } from '../../platform/config/config.ts';
import { spawnerSection } from '../../platform/config/sections-schema.ts';
import type { OptionsForm } from '../../plugin/host/spawner.ts';
import { chooseOptions, hasChoices, type SpawnChoices } from './spawn-options.ts';

const form: OptionsForm = {
  fields: [
    { name: 'name', label: 'Name', type: 'text', required: true },
    { name: 'cores', label: 'Cores', type: 'number', min: 1, max: 4, default: '2' },
    { name: 'gpu', label: 'With GPU', type: 'checkbox' },
    {
      name: 'image',
      label: 'Image',
      type: 'select',
      choices: [
        { value: 'small', label: 'Small' },
        { value: 'large', label: 'Large' },
      ],
      default: 'small',
    },
  ],
};
const config = spawnerSection.parse({
  cmd: ['app', '{username}', '--port={port}', '{directory}/x', '{nothing}'],
  args: ['--last'],
  environment: { A: '1', B: '{username} {server}.{x} {}' },
  default_url: '/lab/{username}',
  mem_limit: 1024,
  profiles: [
    { name: 'small', display_name: 'Small' },
    {
      name: 'large',
      display_name: 'Large',
      default: true,
      cmd: ['big'],
      args: [],
      environment: { B: '{server}' },
      mem_limit: 2048,
      mem_guarantee: 1024,
      cpu_limit: 1.5,
      cpu_guarantee: 0.5,
      gpu_limit: 1,
      process_limit: 50,
      volumes: [{ source: 'data-{username}', target: '/data/{server}', read_only: true }],
      default_url: '/tree',
    },
  ],
});
const placeholders = { username: 'ann b', server: 'lab', directory: '/etc/hub' };
const spawnerOf: SpawnChoices['spawnerOf'] = (profile) => profile?.spawner ?? 'main';
const noChoices: SpawnChoices = { profiles: [], forms: new Map(), spawnerOf };
const withForm = { forms: new Map([['main', form]]) };
const choose = (submitted: Record<string, unknown>, choices: Partial<SpawnChoices> = {}) =>
  chooseOptions({ ...noChoices, ...choices }, submitted, config, placeholders);

test('without choices the configuration alone says what runs', () => {
  expect(choose({})).toEqual({
    command: ['app', 'ann b', '--port={port}', '/etc/hub/x', '{nothing}', '--last'],
    environment: { A: '1', B: 'ann b lab.{x} {}' },
    defaultUrl: '/lab/ann b',
    profile: undefined,
    limits: { memoryBytes: 1024 },
    guarantees: {},
    volumes: [],
    userOptions: {},
  });
  expect(hasChoices(noChoices)).toBe(false);
  expect(hasChoices({ ...noChoices, ...withForm })).toBe(true);
});

test('the name of a user that looks like a placeholder is not filled in again', () => {
  const chosen = chooseOptions(noChoices, {}, config, {
    username: '{directory}',
    directory: '/etc/hub',
  });
  expect(chosen.command[1]).toBe('{directory}');
});

describe('profiles', () => {
  const { profiles } = config;

  test('the default one is taken when nothing is chosen', () => {
    expect(choose({}, { profiles })).toEqual({
      command: ['big'],
      environment: { A: '1', B: 'lab' },
      defaultUrl: '/tree',
      profile: 'large',
      limits: { memoryBytes: 2048, cpuCores: 1.5, gpus: 1, processes: 50 },
      guarantees: { memoryBytes: 1024, cpuCores: 0.5 },
      volumes: [{ source: 'data-{username}', target: '/data/lab', readOnly: true }],
      userOptions: { profile: 'large' },
    });
  });

  test('what a profile leaves open is as configured', () => {
    expect(choose({ profile: 'small' }, { profiles })).toMatchObject({
      limits: { memoryBytes: 1024 },
      userOptions: { profile: 'small' },
    });
  });

  test('one that does not exist is refused', () => {
    expect(() => choose({ profile: 'huge' }, { profiles })).toThrow(
      'There is no such profile; there are: small, large.',
    );
  });
});

describe('the options form', () => {
  test('takes what a browser sends and what a program sends', () => {
    const browser = { name: 'x', cores: '3', gpu: 'on', image: 'large' };
    const program = { name: 'x', cores: 3, gpu: true, image: 'large' };
    expect(choose(browser, withForm).userOptions).toEqual(program);
    expect(choose(program, withForm).userOptions).toEqual(program);
  });

  test('fills in what is left out', () => {
    expect(choose({ name: 'x', cores: '' }, withForm).userOptions).toEqual({
      name: 'x',
      cores: 2,
      gpu: false,
      image: 'small',
    });
  });

  test.each([
    [{}, 'Name: this must be filled in.'],
    [{ name: 'x', cores: 'many' }, 'Cores: this must be a number.'],
    [{ name: 'x', cores: '0' }, 'Cores: this must be at least 1.'],
    [{ name: 'x', cores: 5 }, 'Cores: this must be at most 4.'],
    [{ name: 'x', cores: 'Infinity' }, 'Cores: this must be a number.'],
    [{ name: 'x', image: 'huge' }, 'Image: this is none of the choices.'],
    [{ name: { $ne: '' } }, 'Name: this must be a text.'],
    [{ name: 'x'.repeat(10_001) }, 'Name: this must be a text.'],
  ])('refuses %j', (submitted, message) => {
    expect(() => choose(submitted, withForm)).toThrow(message);
  });
});

describe('options of no form', () => {
  const options = { repo: 'a/b', limits: { gpus: [0, 1], memory: null }, profile: 'their own' };

  test('are any JSON and stay as they are', () => {
    expect(choose(options).userOptions).toEqual(options);
    expect(choose({ name: 'x', ...options }, withForm).userOptions).toEqual({
      ...options,
      name: 'x',
      cores: 2,
      gpu: false,
      image: 'small',
    });
  });

  test.each([
    [{ big: 'x'.repeat(64 * 1024) }, 'may take 64 KiB together, written as JSON.'],
    [{ deep: JSON.parse(`${'['.repeat(9_000)}${']'.repeat(9_000)}`) }, 'nested 100 levels deep'],
  ])('are refused when they are too much to keep: %#', (submitted, message) => {
    expect(() => choose(submitted)).toThrow(message);
  });
});

test('a hub without a command says what the administrator must do', () => {
  const empty = spawnerSection.parse({});
  expect(() => chooseOptions(noChoices, {}, empty, placeholders)).toThrow(
    expect.objectContaining({
      code: 'unavailable',
      hint: 'The administrator must set Spawner.cmd.',
    }),
  );
});

test('a user to whom no profile is open starts nothing, rather than a server without a profile', () => {
  expect(() => choose({}, { isClosed: true })).toThrow('No kind of server is open to you.');
});

test('of several spawners only the form of the chosen one counts', () => {
  const [small, large] = config.profiles;
  const profiles = [small, large].map((profile, index) => ({
    ...(profile as SpawnerProfile),
    spawner: index === 0 ? 'main' : 'other',
  }));
  const other: OptionsForm = {
    fields: [{ name: 'cores', label: 'Cores', type: 'number', max: 1 }],
  };
  const forms = new Map([
    ['main', form],
    ['other', other],
  ]);
  const submitted = { name: 'x', cores: '3' };
  const choices = { profiles, forms };
  expect(choose({ ...submitted, profile: 'small' }, choices).userOptions).toMatchObject({
    cores: 3,
  });
  expect(() => choose({ ...submitted, profile: 'large' }, choices)).toThrow('at most 1');
});
