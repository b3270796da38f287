import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/platform/config/config.ts';
import { findVolumeProblems } from '../../src/platform/config/volume-problems.ts';
import { ownVolume } from '../../src/workloads/servers/own-volume.ts';
import { declareRefusals } from '../support/config-loading.ts';

const withVolumes = (...sources: string[]) => ({
  Spawner: {
    volumes: sources.map((source, index) => ({ source, target: `/data/${index}` })),
  },
});

/** The user `ann` names a server `lab-work`, where `ann-lab` has one of the name `work`. */
describe('volumes that a user could reach by the name of a server are refused:', () => {
  declareRefusals([
    ...['home-{username}-{server}', '/homes/{username}-{server}', '{server}{username}'].map(
      (source) =>
        [
          source,
          withVolumes(source),
          /^Spawner\.volumes\[0\]\.source: could be the same for two users: put "_" or "--" between/,
        ] as const,
    ),
    ...['lab-{server}', '/labs/{server}-x', '{server}username'].map(
      (source) =>
        [
          source,
          withVolumes(source),
          'Spawner.volumes[0].source: has {server} without {username}: servers of different users may have one name',
        ] as const,
    ),
    [
      'in a profile',
      {
        Spawner: {
          profiles: [{ name: 'x', volumes: [{ source: 'a{username}-{server}', target: '/a' }] }],
        },
      },
      /^Spawner\.profiles\[0\]\.volumes\[0\]\.source: could be the same for two users/,
    ],
  ]);
});

describe('volumes of two patterns that could be one for two users are refused:', () => {
  const problem = /^Spawner\.volumes\[\d\]\.source: could be .* of another user/;
  declareRefusals([
    ['ann-work and ann, a volume', withVolumes('{username}', '{username}-work'), problem],
    ['work-ann and ann, a folder', withVolumes('/d/{username}', '/d/work-{username}'), problem],
    [
      'a server of ann and ann',
      withVolumes('home-{username}', 'home-{username}--{server}'),
      problem,
    ],
  ]);

  test('a folder of a volume is in it: not of a user beside those who can write to all of it', () => {
    const homes = { source: 'nfs', sub_path: 'home/{username}', target: '/home' };
    const problemsOf = (...volumes: object[]) =>
      findVolumeProblems({ Spawner: { volumes, profiles: [] } } as never);
    expect(problemsOf(homes)).toEqual([]);
    expect(problemsOf(homes, { source: 'nfs', target: '/all', read_only: true })).toEqual([]);
    expect(problemsOf(homes, { source: 'nfs', target: '/all' })).toMatchObject([
      { path: 'Spawner.volumes[0].source' },
    ]);
    expect(problemsOf({ ...homes, sub_path: '{username}-{server}' })).toHaveLength(1);
    const { subPath } = ownVolume(
      { source: 'nfs', subPath: 'home/{username}', target: '/home', readOnly: false },
      'Ada/..',
      '',
    );
    expect(subPath).toBe('home/^ada%2^f..');
  });

  test('and others are not', async () => {
    const config = withVolumes(
      'home-{username}',
      'work-{username}',
      'home_{username}_{server}',
      '/homes/{username}',
      '/data/{username}/server-{server}',
      'shared',
      '/shared',
    );
    expect(findVolumeProblems({ Spawner: { ...config.Spawner, profiles: [] } } as never)).toEqual(
      [],
    );
  });
});

/** In it a user can put a link in place of the folder of another server, before that is mounted. */
describe('a writable folder around one that is mounted elsewhere is refused:', () => {
  declareRefusals([
    [
      'that of the default server, whose name is empty',
      withVolumes('/homes/{username}/{server}'),
      /^Spawner\.volumes\[0\]\.source: has \{server\} between two slashes, where the default server/,
    ],
    [
      'that of another profile',
      {
        Spawner: {
          volumes: [{ source: '/homes/{username}', target: '/home' }],
          profiles: [
            { name: 'x', volumes: [{ source: '/homes/{username}/work', target: '/work' }] },
          ],
        },
      },
      'Spawner.profiles[0].volumes[0].source: lies in /homes/{username} (Spawner.volumes[0]), which users can write to: a link there could lead anywhere',
    ],
    [
      'that of a user who can have the name',
      withVolumes('/homes/{username}/', '/homes/course/material'),
      /^Spawner\.volumes\[1\]\.source: lies in \/homes\/\{username\}\/ \(Spawner\.volumes\[0\]\)/,
    ],
  ]);
});

test('volumes of all other patterns are of one user alone, whatever users and servers are called', () => {
  const between = fc.constantFrom('-', '--', '---', '_', '.', '/', '', 'x', '-x-', '/s-', '-x_');
  const piece = fc.constantFrom('', 'a', 'b', '0', '-', 'x', 'a-', '_', 'A', 'u-x');
  const serverName = /^(?:[a-z](?:-?[a-z0-9])*)?$/;
  fc.assert(
    fc.property(
      fc.constantFrom('', '/', 'x', '/x-'),
      between,
      fc.tuple(piece, piece, piece),
      fc.boolean(),
      (start, parting, [a, b, c], isTurned) => {
        const words = ['{username}', '{server}'];
        const source = start + (isTurned ? words.toReversed() : words).join(parting);
        const config = {
          Spawner: { volumes: [{ source, target: '/data', read_only: true }], profiles: [] },
        } as unknown as Config;
        if (findVolumeProblems(config).length > 0) return;
        // One text, cut into the names of a user and a server at two places.
        const [one, other] = [
          [a, `${b}${parting}${c}`],
          [`${a}${parting}${b}`, c],
        ].map((names) => {
          const [user = '', server = ''] = isTurned ? names.toReversed() : names;
          const volume = { source, target: '/data', readOnly: true };
          const isPossible = user !== '' && !user.includes('/') && serverName.test(server);
          return isPossible ? { user, source: ownVolume(volume, user, server).source } : undefined;
        });
        if (one === undefined || other === undefined || one.user === other.user) return;
        expect(one.source).not.toBe(other.source);
      },
    ),
    { numRuns: 20_000 },
  );
});
