import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { documentedBlock, documentedBlocks } from '../support/documented-blocks.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { programFile } from '../support/program-file.ts';
import { pathOf, requires } from '../support/requires.ts';
import { submitForm, submitLogin, until } from '../support/test-hub.ts';

const page = 'docs/how-to/from-tljh.md';
/** As short as FirstUseAuthenticator takes them, shorter than new ones here. */
const password = '7 chars';
const hash = '$2b$04$LykhvKjkuMAKTfbfRkbLN.0AgjiKmrYcEJWvVF4kS9G7TDRxevtja';
const longName = 'ada-countess-of-lovelace';
/** As generate_system_username of TLJH does (tljh/normalize.py): at most 26 characters, and of a hash. */
const shortened = `${longName.slice(0, 18)}-${createHash('sha256').update(`jupyter-${longName}`).digest('hex').slice(0, 5)}`;

interface UserModel {
  readonly servers: Readonly<Record<string, { readonly state?: { readonly pid?: number } }>>;
}

/** What TLJH keeps, made by JupyterHub's own Python; prints a token of Ada. */
const oldState = `
import dbm
from jupyterhub import orm, roles
db = orm.new_session_factory("sqlite:////opt/tljh/state/jupyterhub.sqlite")()
for role in roles.get_default_roles():
    roles.create_role(db, role)
db.add(orm.OAuthClient(identifier="jupyterhub", description="JupyterHub"))
for name in "ada", "bob", "${longName}":
    user = orm.User(name=name, admin=name == "ada")
    db.add(user)
    db.commit()
    roles.assign_default_roles(db, entity=user)
with dbm.open("/opt/tljh/state/passwords.dbm", "c", 0o600) as file:
    for name in "ada", "bob", "${longName}":
        file[name] = "${hash}"
print("token", orm.User.find(db, "ada").new_api_token(note="script"))
`;

/** The machine as TLJH leaves it, of which nothing is seen outside of its namespaces. Only Ada has a notebook. */
const oldMachine = (folder: string) => `
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs ${folder}/memory
for name in etc home opt; do
  mkdir ${folder}/memory/$name ${folder}/memory/$name.work
  mount -t overlay -o lowerdir=/$name,upperdir=${folder}/memory/$name,workdir=${folder}/memory/$name.work overlay /$name
done
program() { printf '#!/bin/sh\\n%s\\n' "$2" > "$1"; chmod 755 "$1"; }
mkdir -p /opt/tljh/hub/bin /opt/tljh/user/bin /opt/tljh/state ${folder}/memory/bin
program /opt/tljh/hub/bin/python3 'exec ${pathOf('python3-jupyterhub')} "$@"'
program /opt/tljh/user/bin/jupyterhub-singleuser '[ "$JUPYTERHUB_USER" = ada ] || exec sleep 900
exec ${pathOf('jupyterhub-singleuser')} "$@"'
program ${folder}/memory/bin/systemctl 'echo systemctl "$@"'
program ${folder}/memory/bin/hub 'exec ${process.execPath} ${programFile('main')} "$@"'
PATH=${folder}/memory/bin:$PATH
for account in ada ${shortened}; do
  ${pathOf('useradd')} --create-home jupyter-$account
  echo "of $account" > /home/jupyter-$account/notes.txt
done
/opt/tljh/hub/bin/python3 -c '${oldState}'
`;

const canRun = requires(
  'root',
  'unshare',
  'useradd',
  'python3-jupyterhub',
  'jupyterhub-singleuser',
  'jupyter-notebook',
);

test.skipIf(!canRun)('users of TLJH find their passwords, tokens, accounts and files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hub-from-tljh-'));
  await chmod(folder, 0o755);
  let machine: ChildProcess | undefined;
  try {
    const [port, internal] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}/`;
    const config = documentedBlock(page, 'jsonc')
      .replace('http://127.0.0.1:8000/', url)
      .replace('"Hub": {', `"Hub": { "hub_bind_url": "http://127.0.0.1:${internal}",`);
    await writeFile(join(folder, 'hub.config.json'), config);
    const [move = '', nameAccount = ''] = documentedBlocks(page, 'sh');
    const commands = move.replace('hub start\n', `${nameAccount}exec hub start\n`);
    const script = `set -e\nmkdir ${folder}/memory\n${oldMachine(folder)}\n${commands}`;
    const args = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
    machine = spawn(pathOf('unshare'), [...args, 'sh', '-c', script], { cwd: folder });
    let output = '';
    machine.stderr?.on('data', (chunk) => (output += chunk));
    machine.stdout?.on('data', (chunk) => (output += chunk));
    await until(() => {
      if (machine?.exitCode !== null) throw new Error(`it ended: ${output}`);
      return output.includes('The hub is ready at');
    }, 'the hub is ready');

    const [, token = ''] = /^token (\w+)$/m.exec(output) ?? [];
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(url + path, { headers: { authorization: `token ${token}` }, ...init });
    const root = `/proc/${await childOf(machine.pid ?? 0)}/root`;
    const pidOf = async (name: string) => {
      const { servers } = (await (await ask(`hub/api/users/${name}`)).json()) as UserModel;
      return servers['']?.state?.pid;
    };

    const accounts = { ada: 'ada', bob: 'bob', [longName]: shortened };
    for (const [name, account] of Object.entries(accounts)) {
      // Everybody with their own password; an administrator stays one, and nobody else becomes one.
      const browser = new FakeBrowser();
      expect((await submitLogin(browser, url, name, 'wrong horse')).status).toBe(401);
      const answer = await submitLogin(browser, url, name, password);
      expect((await browser.open(`${url}hub/admin`)).status).toBe(name === 'ada' ? 200 : 403);

      // The login leads to the server, which runs under the user's account; that of a new one is made.
      expect((await submitForm(browser, await browser.follow(answer), {})).status).toBe(303);
      await until(async () => (await pidOf(name)) !== undefined, `the server of ${name} runs`);
      const { uid } = await stat(`${root}/proc/${await pidOf(name)}`);
      expect(uid).toBe((await stat(`${root}/home/jupyter-${account}`)).uid);
    }
    await until(async () => {
      const answer = await ask('user/ada/api/contents/notes.txt');
      return answer.ok && (await answer.text()).includes('of ada');
    }, 'ada has her notes');
  } finally {
    machine?.kill('SIGKILL');
    if (machine?.exitCode === null && machine.signalCode === null) await once(machine, 'exit');
    await rm(folder, { recursive: true });
  }
});

async function childOf(pid: number): Promise<string> {
  return (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
}
