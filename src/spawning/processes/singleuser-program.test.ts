import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import {
  fillGuardedCommand,
  withSingleuserOnPath,
  withSingleuserProgram,
} from './singleuser-program.ts';

test('a command that begins with hub-singleuser runs the one of this hub, wherever it is', () => {
  const [program = '', ...args] = withSingleuserProgram(['hub-singleuser', '--help']);
  const help = execFileSync(program, args, { encoding: 'utf8', cwd: '/', env: {} });
  expect(help).toContain('in front of any web app');
});

test('any other command is left as it is', () => {
  for (const command of [['node', 'hub-singleuser'], ['/opt/hub-singleuser', 'x'], []]) {
    expect(withSingleuserProgram(command)).toEqual(command);
  }
});

test('a shell finds it on the PATH, before one of another version, with or without a PATH', () => {
  for (const environment of [{}, { PATH: '/usr/bin:/bin' }, { PATH: '/nowhere:/usr/bin:/bin' }]) {
    const env = withSingleuserOnPath(environment);
    const help = execFileSync('/bin/sh', ['-c', 'cd / && exec hub-singleuser --help'], {
      encoding: 'utf8',
      env,
    });
    expect(help).toContain('in front of any web app');
  }
});

test.for([
  ['a command without a guard', ['app', '--', '{port}'], ['app', '--', '1']],
  [
    'what stands behind a guard',
    ['hub-singleuser', '{port}', '--', '{port}'],
    ['hub-singleuser', '1', '--', '{port}'],
  ],
  ['a script without a guard', ['sh', '-c', 'app -- {port}'], ['sh', '-c', 'app -- 1']],
  [
    'a script with a guard',
    ['sh', '-c', 'echo {port}; exec hub-singleuser --strip-prefix -- app {port}'],
    ['sh', '-c', 'echo 1; exec hub-singleuser --strip-prefix -- app {port}'],
  ],
  [
    'a script with the path of a guard and several lines',
    ['sh', '-c', 'exec /opt/hub-singleuser \\\n --strip-prefix \\\n -- app {port}'],
    ['sh', '-c', 'exec /opt/hub-singleuser \\\n --strip-prefix \\\n -- app {port}'],
  ],
  [
    'a script with another guard',
    ['sh', '-c', 'my-hub-singleuser -- {port}'],
    ['sh', '-c', 'my-hub-singleuser -- 1'],
  ],
])('placeholders are filled in: %s', ([, command, filled]) => {
  const fill = (text: string) => text.replaceAll('{port}', '1');
  expect(fillGuardedCommand(command as string[], fill)).toEqual(filled);
});
