import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Secret } from '../../platform/config/secret.ts';
import type { IdentityVariables } from '../../platform/internal-tls/identity-files.ts';
import { identifyChild } from '../../platform/process-table/process-table.ts';
import { notStarted, type StartGatewayProcess } from './local-gateways.ts';

const startMs = 60_000;
/** Beside what every program needs: what decides whom a gateway trusts and how it is run. */
const inherited = /^(?:PATH|LANG|LC_.*|TZ|HOME|USER|TMPDIR|NODE_.*|SSL_CERT_.*)$/;

/** Starts `hub gateway` as a process that outlives the hub; its log goes where the hub's goes. */
export function createStartGatewayProcess(deps: {
  readonly config: Pick<Config, 'Hub' | 'directory'>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly token: Secret;
  /** Command line of the program, without a command of its own. */
  readonly program: readonly string[];
  readonly tokenVariable: string;
  /** Where it finds what it shows the hub, with `Hub.internal_ssl`. */
  readonly identityVariables?: IdentityVariables | undefined;
}): StartGatewayProcess {
  const { Hub, directory } = deps.config;
  const kept = Object.entries(deps.environment).filter(([name]) => inherited.test(name));
  const [command = '', ...first] = deps.program;
  const hubUrl = internalUrl(Hub.hub_bind_url);

  return async (signal) => {
    const child = spawn(
      command,
      [
        ...[...first, 'gateway', '--local', '--hub', hubUrl],
        ...['--log-level', Hub.log_level, '--log-format', Hub.log_format],
      ],
      {
        cwd: directory,
        env: {
          ...Object.fromEntries(kept),
          ...deps.identityVariables,
          [deps.tokenVariable]: deps.token.reveal(),
        },
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const identity = child.pid === undefined ? undefined : identifyChild(child.pid);
    const limit = AbortSignal.any([timeLimit(startMs), ...(signal === undefined ? [] : [signal])]);
    const ready = once(child.stdout, 'data', { signal: limit });
    const ended = once(child, 'exit').then(([code]) => {
      throw notStarted(`it ended with code ${code}; the log says why`);
    });
    try {
      await Promise.race([ready, ended]);
    } catch (error) {
      child.kill('SIGTERM');
      throw error instanceof Error && error.name === 'AbortError' && signal?.aborted !== true
        ? notStarted(`it took longer than ${startMs / 1000} seconds`)
        : error;
    }
    ready.catch(() => {});
    ended.catch(() => {});
    child.stdout.destroy();
    child.unref();
    if (identity === undefined) throw notStarted('it has no process id');
    return identity;
  };
}

/** The internal address as this machine reaches it. */
function internalUrl(bindUrl: string): string {
  const url = new URL(bindUrl);
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url.origin;
}
