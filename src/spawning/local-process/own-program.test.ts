import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { withOwnProgram } from './own-program.ts';

test('a command that begins with hub-singleuser runs the one of this hub, wherever it is', () => {
  const [program = '', ...args] = withOwnProgram(['hub-singleuser', '--help']);
  const help = execFileSync(program, args, { encoding: 'utf8', cwd: '/', env: {} });
  expect(help).toContain('in front of any web app');
});

test('any other command is left as it is', () => {
  for (const command of [['node', 'hub-singleuser'], ['/opt/hub-singleuser', 'x'], []]) {
    expect(withOwnProgram(command)).toEqual(command);
  }
});
