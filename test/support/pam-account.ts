import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { pathOf, requires } from './requires.ts';

/** Whether accounts can be made, and asked for by PAM. */
export function canUsePam(): boolean {
  return requires('root', 'python3', 'setpriv', 'useradd');
}

export interface PamAccount extends Disposable {
  readonly name: string;
  readonly password: string;
  /** Runs a program on the account, such as `chage`, with its name as the last word. */
  change(...command: readonly [string, ...string[]]): void;
  /** A PAM service of its own, with these lines; its name. */
  service(lines: string): string;
}

const run = (program: string, args: readonly string[], input = '') =>
  execFileSync(program, args, { input });

/** Makes an account of the machine, with a password and without a home. */
export function makePamAccount(): PamAccount {
  const word = randomBytes(4).toString('hex');
  const [name, password] = [`hubtest${word}`, `purple ${word} elephants`];
  const services: string[] = [];
  run(pathOf('useradd'), ['--no-create-home', name]);
  run('chpasswd', [], `${name}:${password}`);
  return {
    name,
    password,
    change(program, ...rest) {
      run(program, [...rest, name]);
    },
    service(lines) {
      const file = `hubtest-${randomBytes(4).toString('hex')}`;
      writeFileSync(`/etc/pam.d/${file}`, lines);
      services.push(`/etc/pam.d/${file}`);
      return file;
    },
    [Symbol.dispose]() {
      for (const file of services) rmSync(file);
      run('userdel', [name]);
    },
  };
}
