import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';

export interface JobScriptOptions {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** See `SpawnRequest.environmentForUrl`. */
  readonly environmentForUrl: SpawnRequest['environmentForUrl'];
  readonly workingDirectory: string;
  /** Names of environment modules, loaded before the command. */
  readonly modules: readonly string[];
  /** Shell commands of the operator, run before the command. */
  readonly prologue: string;
  /** First and last port the server may take. */
  readonly portRange: readonly [number, number];
  /** Name of the variable with the address at which the job tells its own. */
  readonly addressVariable: string;
  readonly tokenVariable: string;
}

/** Stands for the port where the hub asks for variables that hold it; no range may hold this one. */
export const portPlaceholder = 1;

/**
 * Writes the batch script of a server: it takes a free port of its node, tells the hub, and becomes the
 * command. The environment is in the script, which Slurm shows to the owner of the job and its own
 * operators alone; arguments and variables of `sbatch` would be seen by everyone on the submitting host.
 * Throws RangeError for what no shell can take.
 */
export function writeJobScript(options: JobScriptOptions): string {
  const { command, environment, portRange, modules, prologue, workingDirectory } = options;
  const [firstPort, lastPort] = portRange;
  const listenUrl = `http://0.0.0.0:${portPlaceholder}`;
  const exports = [
    ...Object.entries(environment).map(([name, value]) => `export ${nameOf(name)}=${quote(value)}`),
    'hub_port=$(hub_free_port) || { echo "No port is free on $(hostname)." >&2; exit 75; }',
    ...Object.entries(options.environmentForUrl(listenUrl)).map(
      ([name, value]) => `export ${nameOf(name)}=${withPort(value)}`,
    ),
  ];
  const words = command.map((word) => word.split('{port}').map(quote).join('"$hub_port"'));
  return `#!/bin/bash -l
# The server of a user, started by the hub.
hub_free_port() {
  local tried port hex
  for tried in {1..200}; do
    port=$((${firstPort} + (RANDOM * 32768 + RANDOM) % ${lastPort - firstPort + 1}))
    hex=$(printf '%04X' "$port")
    if ! grep -qsE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:[0-9A-F]+ 0A" /proc/net/tcp /proc/net/tcp6; then
      echo "$port"
      return 0
    fi
  done
  return 1
}

# Over standard input or a connection of the shell: arguments would show the token to others on the node.
hub_tell_address() {
  local body="{\\"port\\": $hub_port}"
  if command -v curl >/dev/null; then
    printf 'url = "%s"\\nheader = "Authorization: token %s"\\nheader = "Content-Type: application/json"\\ndata = "%s"\\n' \\
      "$${options.addressVariable}" "$${options.tokenVariable}" "\${body//\\"/\\\\\\"}" |
      curl --silent --show-error --fail --max-time 20 --config - >/dev/null
  else
    python3 -c '
import os, sys, urllib.request
request = urllib.request.Request(os.environ["${options.addressVariable}"], data=sys.argv[1].encode(), headers={
    "Authorization": "token " + os.environ["${options.tokenVariable}"], "Content-Type": "application/json"})
urllib.request.urlopen(request, timeout=20)' "$body"
  fi
}

${exports.join('\n')}
umask 077
mkdir -p ${quote(workingDirectory)} && cd ${quote(workingDirectory)} || exit 73
${modules.length === 0 ? '' : `module load ${modules.map(quote).join(' ')} || exit 69\n`}${prologue}
if ! command -v ${words[0] ?? "''"} >/dev/null; then
  echo "$(hostname) has no program" ${words[0] ?? "''"} >&2
  exit 127
fi
for hub_attempt in {1..60}; do
  hub_tell_address && break
  if [ "$hub_attempt" = 60 ]; then
    echo "The hub at $${options.addressVariable} cannot be told where the server listens." >&2
    exit 69
  fi
  sleep 5
done
unset -f hub_free_port hub_tell_address
exec ${words.join(' ')}
`;
}

function nameOf(name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new RangeError(`${name} is no name of a variable`);
  return name;
}

/** A word that a shell takes as it is. */
export function quote(text: string): string {
  if (text.includes('\0')) throw new RangeError('a NUL byte cannot be handed to a program');
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A value with the port in place of its placeholder in an authority. */
function withPort(value: string): string {
  return value
    .split(new RegExp(`(?<=://[^/]*):${portPlaceholder}(?=/|$)`))
    .map(quote)
    .join(`:"$hub_port"`);
}
