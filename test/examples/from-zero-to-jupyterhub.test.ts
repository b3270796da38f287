import { readFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parse } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { canRunHelm } from '../support/can-run-helm.ts';
import {
  checkedConfigOf,
  configOf,
  find,
  type Manifest,
  render,
  withFile,
} from '../support/chart.ts';
import { useCommandLine } from '../support/command-line.ts';
import { documentedBlocks } from '../support/documented-blocks.ts';
import { tablesOf54 } from '../support/old-jupyterhub.ts';
import { projectDirectory } from '../support/services.ts';

const page = 'docs/how-to/from-zero-to-jupyterhub.md';
const text = readFileSync(join(projectDirectory, page), 'utf8');
const blocks = documentedBlocks(page, 'jsonc').map((block) => parse(block) as object);

const renderWith = (values: object): Promise<Manifest[]> =>
  withFile(JSON.stringify(values), (file) => render('--values', file));

/** What a `values.yaml` of z2jh has, and what the page's table makes of it for ours. */
const moved: readonly (readonly [old: string, here: string, value: unknown])[] = [
  ['hub.services', 'config.Hub.services', [{ name: 'wiki', api_token: 'the-token-of-the-wiki' }]],
  ['hub.loadRoles', 'config.Hub.load_roles', [{ name: 'staff', scopes: ['list:users'] }]],
  ['hub.allowNamedServers', 'config.Hub.allow_named_servers', true],
  ['hub.redirectToServer', 'config.Hub.redirect_to_server', false],
  [
    'singleuser.image',
    'config.KubernetesSpawner.image',
    'quay.io/jupyter/base-notebook:2026-01-05',
  ],
  ['singleuser.memory.limit', 'config.Spawner.mem_limit', '2G'],
  ['.guarantee', 'config.Spawner.mem_guarantee', '1G'],
  ['singleuser.cpu', 'config.Spawner.cpu_limit', 2],
  ['singleuser.cpu', 'config.Spawner.cpu_guarantee', 0.5],
  ['singleuser.profileList', 'config.Spawner.profiles', [{ name: 'big', display_name: 'Big' }]],
  ['singleuser.defaultUrl', 'config.Spawner.default_url', '/lab'],
  ['.cmd', 'config.Spawner.cmd', ['jupyterhub-singleuser']],
  ['.extraEnv', 'config.Spawner.environment', { EDITOR: 'vi' }],
  ['singleuser.nodeSelector', 'config.KubernetesSpawner.node_selector', { disk: 'ssd' }],
  [
    '.extraTolerations',
    'config.KubernetesSpawner.tolerations',
    [{ key: 'gpu', operator: 'Exists' }],
  ],
  [
    'singleuser.storage.type: dynamic',
    'config.KubernetesSpawner.claims',
    [{ name: 'home-{username}', mount_path: '/home/jovyan' }],
  ],
  ['cull.timeout', 'config.Spawner.idle_timeout_seconds', 3600],
  ['cull.maxAge', 'config.Spawner.max_age_seconds', 86_400],
  ['proxy.service', 'service', { type: 'LoadBalancer' }],
  ['prePuller.continuous', 'prePuller.enabled', true],
  ['prePuller.extraImages', 'prePuller.images', ['quay.io/jupyter/r-notebook:2026-01-05']],
  ['scheduling.userPlaceholder', 'placeholders', { replicas: 2 }],
  ['hub.annotations', 'hub.podAnnotations', { team: 'data' }],
  ['hub.extraContainers', 'hub.extraContainers', [{ name: 'side', image: 'side:1' }]],
];

/** Both cells of the row of the table that has a setting of z2jh. */
function rowOf(old: string): readonly string[] {
  const row = text.split('\n').find((line) => line.split(' | ')[0]?.includes(`\`${old}\``)) ?? '';
  return row.split(' | ');
}

function valuesOf(rows: typeof moved): object {
  const values: Record<string, unknown> = {};
  for (const [, here, value] of rows) {
    const path = here.split('.');
    let place = values;
    for (const name of path.slice(0, -1)) {
      place[name] ??= {};
      place = place[name] as typeof values;
    }
    place[path.at(-1) ?? ''] = value;
  }
  return values;
}

describe('the page for those who come from Zero to JupyterHub', () => {
  const { hub, directory, writeConfig } = useCommandLine();

  test('is right that `hub check` says what replaces a setting', async () => {
    writeConfig({ KubernetesSpawner: { uid: 1000 }, Spawner: { class: 'kubernetes' } });
    expect((await hub('check')).stderr).toContain('run_as_user');
  });

  test('takes the database and its claims over', async () => {
    const inFolder = (name: string) => join(directory(), name);
    const run = async (args: string) => {
      const { exitCode, stdout, stderr } = await hub(args);
      expect(exitCode, stderr).toBe(0);
      return stdout;
    };
    const [, claims = {}] = blocks;
    const [copying = '', choosing = ''] = documentedBlocks(page, 'sh');
    const old = new DatabaseSync(inFolder('old.sqlite'));
    old.exec(tablesOf54);
    old.close();
    writeConfig(claims);
    const printed: string[] = [];
    for (const line of [copying, choosing].flatMap((block) => block.trim().split('\n'))) {
      const command = line.replace(/ +#.*/, '');
      const [, copy] = /^kubectl cp hub-copy:\S+ (\S+)$/.exec(command) ?? [];
      if (copy !== undefined) await copyFile(inFolder('old.sqlite'), inFolder(copy));
      if (command.startsWith('hub ')) printed.push(await run(command.slice(4)));
    }
    expect(printed).toEqual([
      expect.stringMatching(/^Would take over:.* 2 users .* 1 volumes /s),
      expect.stringMatching(/^Taken over:.* 2 users \(2 new\).* 1 volumes \(1 new\)/s),
      expect.any(String),
      'claim  claim-bob-example-org---1a2b3c4d\n',
    ]);
    // KubeSpawner 7 wrote it down.
    expect(await run('user volume ada')).toBe('claim  claim-ada---1a2b3c4d\n');
  });

  test.runIf(canRunHelm())('shows configurations that the chart takes', async () => {
    const [homes = [], claims = []] = await Promise.all(
      blocks.map((config) => renderWith({ config })),
    );
    const { volumes } = (await checkedConfigOf(homes)).Spawner;
    expect(volumes).toMatchObject([{ source: 'nfs-homes', sub_path: 'home/{username}' }]);
    await checkedConfigOf(claims);
    expect(find(claims, 'Role', 'hub')?.['rules']).toContainEqual({
      apiGroups: [''],
      resources: ['persistentvolumeclaims'],
      verbs: expect.arrayContaining(['patch']),
    });
  });

  test.runIf(canRunHelm())('has a table by which values become those of the chart', async () => {
    for (const [old, here] of moved) {
      const name = here.split('.').at(-1);
      expect(rowOf(old)[1], `${old} → ${here}`).toMatch(RegExp(`[\`.]${name}\``));
    }
    const manifests = await renderWith(valuesOf(moved));
    await checkedConfigOf(manifests);
    // The chart adds its own to lists.
    const ours = moved
      .filter(([, here]) => here.startsWith('config.'))
      .map(([old, here, value]) => {
        return [old, here, Array.isArray(value) ? expect.arrayContaining(value) : value] as const;
      });
    expect({ config: configOf(manifests) }).toMatchObject(valuesOf(ours));
    const { template } = find(manifests, 'Deployment', 'hub')?.['spec'] ?? {};
    expect(template.metadata.annotations).toMatchObject({ team: 'data' });
    expect(template.spec.containers).toContainEqual({ name: 'side', image: 'side:1' });
  });
});
