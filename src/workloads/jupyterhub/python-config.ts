import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { HubError } from '../../platform/errors.ts';
import type { OldPassword } from './old-passwords.ts';

/** A configuration by sections, as JSON; what JSON cannot say is `{"__python__": "its name"}`. */
export type PythonConfig = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** By which program files are read, and in which environment. */
export interface Python {
  readonly python: string;
  readonly env: NodeJS.ProcessEnv;
}

const maxBytes = 16 * 2 ** 20;
const timeoutMs = 60_000;

/** Loads the file as JupyterHub does, and prints it; what the file prints goes elsewhere. */
const program = `
import json, os, sys
from traitlets.config import LazyConfigValue, PyFileConfigLoader

def plain(value):
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, LazyConfigValue):
        return plain(value.get_value(type(value._update or [])()))
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(each) for each in value), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    kind = value if hasattr(value, "__qualname__") else type(value)
    return {"__python__": ".".join(filter(None, (kind.__module__, kind.__qualname__)))}

output, sys.stdout = sys.stdout, sys.stderr
folder, name = os.path.split(os.path.abspath(sys.argv[1]))
os.chdir(folder)
json.dump(plain(PyFileConfigLoader(name, path=folder).load_config()), output)
`;

/**
 * Runs a configuration file of JupyterHub by a Python that has traitlets, such as JupyterHub's own. Throws `bad_request`
 * with what Python says.
 */
export async function readPythonConfig(
  file: string,
  { python, env }: Python,
): Promise<PythonConfig> {
  return (await run(program, file, { python, env })) as PythonConfig;
}

/** `dbm` has several forms, of which each Python reads its own. */
const dbmProgram = `
import dbm, json, sys
with dbm.open(sys.argv[1], "r") as file:
    json.dump({name.decode(): file[name].decode() for name in file.keys()}, sys.stdout)
`;

/** Reads the `passwords.dbm` of FirstUseAuthenticator, as TLJH has it: hashes by the names of users. */
export async function readPasswordFile(
  file: string,
  python: Python,
): Promise<readonly OldPassword[]> {
  const hashes = (await run(dbmProgram, file, python)) as Record<string, string>;
  return Object.entries(hashes).map(([userName, hash]) => ({ userName, hash }));
}

async function run(script: string, file: string, { python, env }: Python): Promise<unknown> {
  try {
    const options = { env, maxBuffer: maxBytes, timeout: timeoutMs };
    const { stdout } = await promisify(execFile)(python, ['-c', script, file], options);
    return JSON.parse(stdout);
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    const said = stderr?.trim().split('\n').at(-1) || message;
    if (code === 'ENOENT')
      throw new HubError('bad_request', `There is no program ${python}.`, {
        hint: 'Name the Python of the JupyterHub with --python.',
      });
    throw new HubError('bad_request', `${file} cannot be read by ${python}: ${said}`, {
      hint: /No module named 'traitlets'/.test(said)
        ? 'Name the Python of the JupyterHub with --python, such as /opt/tljh/hub/bin/python3.'
        : 'Correct the file, or take a copy of it in which that is left out.',
    });
  }
}

/** What of a value is Python, by its name; undefined where all of it is plain. */
export function pythonIn(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if ('__python__' in value) return String(value.__python__);
  for (const each of Object.values(value)) {
    const found = pythonIn(each);
    if (found !== undefined) return found;
  }
  return undefined;
}
