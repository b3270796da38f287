import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { renderChart } from '../../scripts/helm.ts';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';

/** An object of Kubernetes. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind
  readonly [field: string]: any;
}

export function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((each) => each !== null);
}

/** The objects that the chart makes, with further arguments of `helm template`. */
export async function render(...args: readonly string[]): Promise<Manifest[]> {
  return manifestsOf(await renderChart(...args));
}

export function find(
  manifests: readonly Manifest[],
  kind: string,
  name: string,
): Manifest | undefined {
  return manifests.find((each) => each.kind === kind && each.metadata.name === name);
}

/** The configuration that the chart writes. */
export const configOf = (manifests: readonly Manifest[]) =>
  JSON.parse(find(manifests, 'ConfigMap', 'hub')?.['data']['hub.config.json']) as Record<
    string,
    Record<string, unknown>
  >;

/** Lends a file with a text. */
export async function withFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'hub-chart-'));
  try {
    const file = join(directory, 'hub.config.json');
    await writeFile(file, text);
    return await use(file);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** The configuration as the hub reads it, in the environment that its pods have. */
export async function checkedConfigOf(manifests: readonly Manifest[]) {
  const containers = find(manifests, 'Deployment', 'hub')?.['spec'].template.spec.containers;
  const given: Readonly<Record<string, string>> = {
    HUB_INSTANCE_URL: 'http://10.1.2.3:8080',
    HUB_DATABASE_URL: 'postgresql://hub:password@postgresql/hub',
    HUB_KEYV_URL: 'redis://redis:6379',
  };
  const env = Object.fromEntries(
    containers[0].env.map(({ name }: { name: string }) => [
      name,
      given[name] ?? randomBytes(32).toString('hex'),
    ]),
  );
  const { config } = await withFile(JSON.stringify(configOf(manifests)), (file) =>
    loadCheckedConfig({ file, env }),
  );
  return config;
}
