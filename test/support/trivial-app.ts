import { join } from 'node:path';
import { fixtureFile, nodeCommand } from './node-command.ts';
import { pathOf, requires } from './requires.ts';

/** The command of a web server that says ok to everything: in Perl, which starts sooner, where that is installed. */
export function trivialApp(): string[] {
  return requires('perl')
    ? [pathOf('perl'), join(import.meta.dirname, '../../fixtures/apps/trivial.pl')]
    : nodeCommand(fixtureFile('web-server'));
}
