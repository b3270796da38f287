import { renderChart } from './helm.ts';

const folder = 'deploy/kubernetes';
const note = '# Made by `npm run manifests` from deploy/helm/hub; change that, not this file.\n';

/** What the plain manifests are of: several hubs on PostgreSQL, with a Secret that is made by hand. */
export const plainValues = ['--set', 'database.type=postgresql,secret.create=false'] as const;

/** The plain manifests, by their path in the repository: a file for each template, and one that lists them. */
export async function plainManifests(): Promise<ReadonlyMap<string, string>> {
  const rendered = await renderChart(
    '--skip-tests',
    ...plainValues,
    '--set',
    'createReleaseNamespace=true',
  );
  const files = new Map<string, string[]>();
  for (const document of rendered.split(/^---\n/m)) {
    const [, name, text = ''] = /^# Source: hub\/templates\/(\S+)\n([\s\S]*)$/.exec(document) ?? [];
    if (name === undefined || text.trim() === '') continue;
    files.set(name, [...(files.get(name) ?? []), text]);
  }
  const names = [...files.keys()].toSorted();
  const kustomization = [
    'kind: Kustomization',
    'resources:',
    ...names.map((name) => `  - ${name}`),
  ];
  files.set('kustomization.yaml', [
    ['apiVersion: kustomize.config.k8s.io/v1beta1', ...kustomization, ''].join('\n'),
  ]);
  return new Map(
    [...files].map(([name, documents]) => [
      `${folder}/${name}`,
      note + documents.map((text) => `${text.trimEnd()}\n`).join('---\n'),
    ]),
  );
}
