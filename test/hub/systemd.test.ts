import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { adminToken } from '../support/server-hub.ts';
import { hasSystemd, type Systemd, startSystemd } from '../support/systemd.ts';
import { until } from '../support/test-hub.ts';

const page = 'run-with-systemd.md';

describe.runIf(hasSystemd())(
  'a hub under systemd, installed by docs/how-to/run-with-systemd.md',
  () => {
    let systemd: Systemd;
    let url: string;
    let config: Record<string, Record<string, unknown>>;

    beforeAll(async () => {
      // Shorter than in the unit, which would be a minute of waiting.
      systemd = await startSystemd();
      const [publicPort, internalPort] = [await freePort(), await freePort()];
      url = `http://127.0.0.1:${publicPort}/`;
      config = {
        Hub: {
          bind_url: url,
          hub_bind_url: `http://127.0.0.1:${internalPort}/`,
          authenticator_class: 'hangs',
          services: [{ name: 'admin', admin: true, api_token: adminToken }],
        },
        Spawner: { cmd: 'perl /opt/hub/fixtures/apps/trivial.pl' },
      };
      await systemd.follow(page, 'Install from a checkout', 0);
      await systemd.write('hub.config.json', JSON.stringify(config));
      // Lets the hub hang, in the way that only a bug can: the event loop does not turn any more.
      await systemd.write(
        'plugins/hangs.ts',
        `
      import { z } from 'zod';
      export default {
        kind: 'authenticator',
        name: 'hangs',
        section: 'HangsAuthenticator',
        contract: 1,
        optionsSchema: z.strictObject({}),
        create: () => ({
          login: { kind: 'form', label: 'Never', fields: [{ name: 'username', label: 'Name', type: 'text', autocomplete: 'username' }] },
          async authenticate() { return { outcome: 'refused', reason: 'credentials' }; },
          async beforeSpawn({ name }) { for (;;) if (name !== 'hang') return {}; },
        }),
      };
    `,
      );
    });
    afterAll(() => systemd[Symbol.asyncDispose]());

    const systemctl = (...args: string[]) => systemd.run('systemctl', ...args);

    async function api(path: string, method = 'GET'): Promise<Response> {
      const headers = { authorization: `token ${adminToken}` };
      return fetch(`${url}hub/api${path}`, { method, headers });
    }

    async function stateOf(user: string): Promise<{ pid: number; cgroup: string }> {
      const { servers } = (await (await api(`/users/${user}?include_stopped_servers`)).json()) as {
        servers: Record<string, { state: { pid: number } }>;
      };
      const pid = servers['']?.state.pid ?? 0;
      const { output } = await systemd.run('cat', `/proc/${pid}/cgroup`);
      return { pid, cgroup: /^0::(.*)$/m.exec(output)?.[1] ?? '' };
    }

    test('the unit is understood, every line of it', async () => {
      const found = await systemd.run('systemd-analyze', 'verify', '/opt/hub/deploy/hub.service');
      expect(found).toEqual({ code: 0, output: '' });
    });

    test('is started when it is ready, not before, and says so', async () => {
      await systemd.follow(page, 'Install from a checkout', 1);
      expect((await fetch(`${url}hub/health`)).status).toBe(200);
      await until(() => systemd.output().includes('The hub is ready'), 'the hub says so itself');
      expect(await systemd.property('StatusText')).toBe(`Ready at ${url}`);
      expect(await systemd.property('NotifyAccess')).toBe('main');
    });

    test('reloads, and tells of a configuration that is wrong', async () => {
      expect(await systemctl('reload', 'hub')).toEqual({ code: 0, output: '' });
      await systemd.write('hub.config.json', '{ "Hub": { "bind_ulr": "x" } }');
      expect((await systemctl('reload', 'hub')).code).not.toBe(0);
      expect(systemd.output()).toContain('Hub.bind_ulr: is not a known setting');
      await systemd.write('hub.config.json', JSON.stringify(config));
      await systemd.run('sh', '-c', 'kill -HUP $(systemctl show hub --value -p MainPID)');
      await until(
        () => systemd.output().split('new configuration applied').length === 3,
        'a reload by signal is in the log',
      );
      await until(
        async () => (await systemd.property('ActiveState')) === 'active',
        'systemd was told that the reload is over',
      );
      expect(await systemd.property('StatusText')).toBe(`Ready at ${url}`);
    });

    test("leaves users' servers running when it is restarted, each in a cgroup of its own", async () => {
      await api('/users/alice', 'POST');
      expect((await api('/users/alice/server', 'POST')).status).toBe(201);
      const before = await stateOf('alice');
      expect(before.cgroup).toMatch(/^\/system\.slice\/hub\.service\/hub-[0-9a-f]+-[0-9a-f]+$/);
      expect((await systemctl('restart', 'hub')).code).toBe(0);
      expect(await stateOf('alice')).toEqual(before);
      expect(await (await fetch(`${url}user/alice/`)).text()).toBe('ok\n');
      expect((await api('/users/alice/server', 'DELETE')).status).toBe(204);
      const { code } = await systemd.run('test', '-e', `/proc/${before.pid}`);
      expect(code).toBe(1);
    });

    test("is not spoken for by a user's server", async () => {
      expect((await api('/users/alice/server', 'POST')).status).toBe(201);
      const { cgroup } = await stateOf('alice');
      const speak = `echo $$ > /sys/fs/cgroup${cgroup}/cgroup.procs
      NOTIFY_SOCKET=/run/systemd/notify systemd-notify --status=taken MAINPID=$$ STOPPING=1`;
      await systemd.run('sh', '-c', speak);
      expect((await systemctl('reload', 'hub')).code).toBe(0);
      expect(await systemd.property('StatusText')).toBe(`Ready at ${url}`);
      expect(await systemd.property('ActiveState')).toBe('active');
    });

    test('is started again when its event loop hangs', async () => {
      // Not before: a slow machine takes longer to start.
      await systemd.run(
        'sh',
        '-ec',
        `printf '[Service]\\nWatchdogSec=15\\n' > /run/systemd/system/hub.service.d/watchdog.conf
        systemctl daemon-reload
        systemctl restart hub`,
      );
      const before = await systemd.property('MainPID');
      const { pid } = await stateOf('alice');
      await api('/users/hang', 'POST');
      await expect(api('/users/hang/server', 'POST')).rejects.toThrow();
      await until(
        async () => (await fetch(`${url}hub/health`).catch(() => undefined))?.status === 200,
        'the hub is back',
      );
      expect(await systemd.property('MainPID')).not.toBe(before);
      expect(await systemd.property('NRestarts')).toBe('1');
      expect((await stateOf('alice')).pid).toBe(pid);
    });

    test('stops cleanly, and stays down', async () => {
      expect((await systemctl('stop', 'hub')).code).toBe(0);
      expect(await systemd.property('ActiveState')).toBe('inactive');
      expect(await systemd.property('Result')).toBe('success');
      expect(systemd.output()).toContain('hub stopped');
    });

    test('starts servers under other accounts from its own, which keeps root out of it', async () => {
      const Spawner = {
        cmd: 'perl /opt/hub/fixtures/apps/trivial.pl',
        system_user: '{username}',
        allowed_system_users: ['games'],
      };
      await systemd.write('hub.config.json', JSON.stringify({ ...config, Spawner }));
      await systemd.follow(page, "Servers under users' own accounts", 0);
      expect(await systemd.property('StatusText')).toBe(`Ready at ${url}`);
      expect(await ownerOf(`/proc/${await systemd.property('MainPID')}`)).toBe('hub');

      await api('/users/games', 'POST');
      expect((await api('/users/games/server', 'POST')).status).toBe(201);
      const { pid, cgroup } = await stateOf('games');
      expect(await ownerOf(`/proc/${pid}`)).toBe('games');
      expect(await ownerOf('/var/lib/hub/homes/games')).toBe('games');
      expect(cgroup).toMatch(/^\/system\.slice\/hub\.service\/hub-/);
      const { output } = await systemd.run('cat', `/proc/${pid}/status`);
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) {
        expect(output).toMatch(new RegExp(`^${set}:\\s*0{16}$`, 'm'));
      }
      expect(await (await fetch(`${url}user/games/`)).text()).toBe('ok\n');
      expect((await api('/users/games/server', 'DELETE')).status).toBe(204);
      expect((await systemd.run('test', '-e', `/proc/${pid}`)).code).toBe(1);
    });

    test('reaches their sockets with one capability more', async () => {
      const Spawner = {
        cmd: 'node /opt/hub/fixtures/apps/web-server.cjs',
        system_user: '{username}',
        allowed_system_users: ['games'],
        socket: true,
      };
      await systemd.write('hub.config.json', JSON.stringify({ ...config, Spawner }));
      const dropIn = '[Service]\nAmbientCapabilities=CAP_DAC_OVERRIDE\n';
      const file = '/etc/systemd/system/hub.service.d/socket.conf';
      await systemd.run('sh', '-c', 'printf %s "$1" >"$2"', 'sh', dropIn, file);
      await systemctl('daemon-reload');
      expect((await systemctl('restart', 'hub')).code).toBe(0);
      expect((await api('/users/games/server', 'POST')).status).toBe(201);
      expect(await (await fetch(`${url}user/games/`)).text()).toContain('"url":"/user/games/"');
      const folders = () => systemd.run('sh', '-c', 'ls -d /var/lib/hub/logs/servers/srv-*/s/*');
      expect((await folders()).output).toMatch(/server\.sock\n$/);
      expect((await api('/users/games/server', 'DELETE')).status).toBe(204);
      expect((await folders()).code).not.toBe(0);
    });

    test('answers on the socket of its unit, hardened as the package for Debian has it', async () => {
      const Spawner = { cmd: 'perl /opt/hub/fixtures/apps/trivial.pl' };
      await systemd.write('hub.config.json', JSON.stringify({ ...config, Spawner }));
      await install(`rm /etc/systemd/system/hub.service.d/*
        cp /opt/hub/deploy/debian/hardening.conf /etc/systemd/system/hub.service.d/
        sed s/:8000/:${new URL(url).port}/ /opt/hub/deploy/debian/hub.socket >/etc/systemd/system/hub.socket`);
      expect((await systemctl('start', 'hub.socket', 'hub')).code).toBe(0);
      await api('/users/carol', 'POST');
      expect((await api('/users/carol/server', 'POST')).status).toBe(201);
      const restarted = systemctl('restart', 'hub');
      // Never refused, whether the hub listens at this moment or does not.
      let isOver = false;
      const over = restarted.finally(() => {
        isOver = true;
      });
      // A connection of before is closed when the hub stops, also one with a request on its way.
      const init = { headers: { connection: 'close' } };
      while (!isOver) expect((await fetch(`${url}hub/health`, init)).status).toBeLessThan(504);
      expect((await over).code).toBe(0);
      expect(await (await fetch(`${url}user/carol/`)).text()).toBe('ok\n');
      expect((await api('/users/carol/server', 'DELETE')).status).toBe(204);
    });

    test('refuses a socket that is not where the configuration says', async () => {
      await install('sed -i s/127.0.0.1:/[::]:/ /etc/systemd/system/hub.socket');
      await systemctl('restart', 'hub.socket');
      expect((await systemctl('start', 'hub')).code).not.toBe(0);
      expect(systemd.output()).toMatch(/the socket of the service manager is at :: port/);
    });

    async function install(script: string): Promise<void> {
      const commands = `systemctl stop hub.socket hub || systemctl stop hub\n${script}\nsystemctl daemon-reload`;
      expect(await systemd.run('sh', '-ec', commands)).toMatchObject({ code: 0 });
    }

    async function ownerOf(path: string): Promise<string> {
      return (await systemd.run('stat', '-c', '%U', path)).output.trim();
    }
  },
);
