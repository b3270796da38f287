import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { quote, writeJobScript } from './job-script.ts';

const nasty = [
  `it's "quoted" $(touch /tmp/hub-pwned) \`id\` \\ $HOME`,
  'line one\nline two\n',
  '-n',
  '*',
  '',
];

test.skipIf(!requires('bash')).for(nasty)('Bash takes %j as it is', (value) => {
  const output = execFileSync(pathOf('bash'), ['-c', `printf %s ${quote(value)}`], {
    encoding: 'utf8',
  });
  expect(output).toBe(value);
});

const options = {
  command: ['true'],
  environment: {},
  environmentForUrl: (url: string) => ({ HUB_SERVICE_URL: `${url}/user/ada/` }),
  workingDirectory: '/tmp',
  modules: [],
  prologue: '',
  portRange: [21_000, 21_999],
  addressVariable: 'HUB_ADDRESS_URL',
  tokenVariable: 'HUB_API_TOKEN',
} as const;

test('refuses what no variable can be called, and what no program can be told', () => {
  const script = (environment: Record<string, string>) =>
    writeJobScript({ ...options, environment });
  expect(() => script({ 'A=1; touch /tmp/x': 'b' })).toThrow(RangeError);
  expect(() => script({ A: 'b\0c' })).toThrow(RangeError);
});

test.skipIf(!requires('bash', 'curl'))(
  'the script tells its port with its token, and becomes the command there',
  async () => {
    const reported: unknown[] = [];
    const server = createServer((request, response) => {
      void json(request).then((body) => {
        reported.push(request.headers.authorization, body);
        response.writeHead(204).end();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const workingDirectory = join(mkdtempSync(join(tmpdir(), 'hub-job-')), "it's", 'new');
    const command = ['sh', '-c', 'printf "%s|%s|%s|%s" "$HUB_SERVICE_URL" "$1" "$2" "$PWD"', 'sh'];
    const script = writeJobScript({
      ...options,
      command: [...command, '--port={port}', nasty[0] ?? ''],
      environment: { HUB_ADDRESS_URL: `http://127.0.0.1:${port}/`, HUB_API_TOKEN: 'a-token' },
      workingDirectory,
      prologue: 'export PROLOGUE=ran',
    });
    const job = spawn(pathOf('bash'), ['-s'], { stdio: ['pipe', 'pipe', 'inherit'] });
    job.stdin.end(script);
    const output = await text(job.stdout);
    server.close();
    const taken = /:(2\d{4})\//.exec(output)?.[1];
    expect(output).toBe(
      `http://0.0.0.0:${taken}/user/ada/|--port=${taken}|${nasty[0]}|${workingDirectory}`,
    );
    expect(reported).toEqual(['token a-token', { port: Number(taken) }]);
  },
);
