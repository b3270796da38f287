import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { execPath } from 'node:process';
import { programFile, programFolder } from '../../platform/files/program-folder.ts';

/**
 * A unit of systemd that runs this program with a configuration file, in the account that wrote it: `deploy/hub.service`
 * with its places. `lowPorts` is whether the hub takes a port below 1024.
 */
export function unitText(config: string, lowPorts: boolean): string {
  const program = `${word(execPath)} ${word(programFile('src/main'))}`;
  return readFileSync(join(programFolder, 'deploy', 'hub.service'), 'utf8')
    .replace(/^(?:#.*\n)+/, '# Written together with its configuration.\n')
    .replace(/^(?:Documentation|StateDirectory).*\n/gm, '')
    .replace(/^User=.*/m, () => `User=${userInfo().username}`)
    .replace(/^WorkingDirectory=.*/m, () => `WorkingDirectory=${specifiersOff(dirname(config))}`)
    .replaceAll('/opt/hub/node_modules/.bin/node /opt/hub/src/main.ts', () => program)
    .replaceAll('/opt/hub/node_modules/.bin', () => specifiersOff(dirname(execPath)))
    .replaceAll('/var/lib/hub/hub.config.json', () => word(config))
    .replace(lowPorts ? /^#(?=AmbientCapabilities)/m : /(?!)/, '');
}

/** A word of a command line: systemd.service(5). */
function word(text: string): string {
  return specifiersOff(/^[\w./@-]+$/.test(text) ? text : JSON.stringify(text)).replaceAll(
    '$',
    '$$$$',
  );
}

function specifiersOff(text: string): string {
  return text.replaceAll('%', '%%');
}
