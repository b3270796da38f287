import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const project = join(import.meta.dirname, '..');
const cache = join(project, 'node_modules', '.cache', 'hub-kubernetes-tools');

/** The Kubernetes version that templates are rendered for; they make no difference between versions. */
const kubernetesVersion = '1.33.0';

export const chart = join(project, 'deploy', 'helm', 'hub');

/** Whether this machine can run the Helm and the kubectl of the npm package: they are programs of Linux on x86-64. */
export const runsHelm = process.platform === 'linux' && process.arch === 'x64';

/** Path of a program, which is unpacked once. */
export async function pathOf(tool: 'helm' | 'kubectl'): Promise<string> {
  const program = join(cache, tool, tool);
  if (existsSync(program)) return program;
  const archive = fileURLToPath(import.meta.resolve('@aws-cdk/asset-kubectl-v20/lib/layer.zip'));
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, 'unpacked-'));
  await run('unzip', ['-q', archive, '-d', directory]);
  try {
    renameSync(join(directory, tool), join(cache, tool));
  } catch (error) {
    // Another process was faster.
    if (!existsSync(program)) throw error;
  }
  rmSync(directory, { recursive: true });
  return program;
}

/** Runs Helm and returns what it prints; throws an error with what it complains of. */
export async function helm(...args: readonly string[]): Promise<string> {
  return (await run(await pathOf('helm'), args, { maxBuffer: 2 ** 24 })).stdout;
}

/** Runs kubectl and returns what it prints; throws an error with what it complains of. */
export async function kubectl(...args: readonly string[]): Promise<string> {
  return (await run(await pathOf('kubectl'), args, { maxBuffer: 2 ** 24 })).stdout;
}

/** The chart as YAML for a release and a namespace `hub`, with further arguments of `helm template`. */
export function renderChart(...args: readonly string[]): Promise<string> {
  const where = ['--namespace', 'hub', '--kube-version', kubernetesVersion];
  return helm('template', 'hub', chart, ...where, ...args);
}
