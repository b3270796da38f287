/**
 * Variables that say something about the machine of the hub and would hide what the image says, which
 * a container must do with.
 */
const ofTheHubsMachine = new Set([
  'PATH',
  'HUB_SINGLEUSER_NODE',
  'LD_LIBRARY_PATH',
  'PYTHONPATH',
  'VIRTUAL_ENV',
  'CONDA_ROOT',
  'CONDA_DEFAULT_ENV',
]);

/** What a server in a container is given of its environment, as names and values. */
export function environmentInImage(
  environment: Readonly<Record<string, string>>,
): [name: string, value: string][] {
  return Object.entries(environment).filter(([name]) => !ofTheHubsMachine.has(name));
}
