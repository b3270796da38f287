import type { Command } from 'commander';
import type { CliIo } from './cli-io.ts';

/** Adds `hub login` and `hub logout`. */
export function addLoginCommands(program: Command, io: CliIo): void {
  program
    .command('login')
    .description('log in to a remote hub by a browser, for commands with --url')
    .argument('<url>', 'where its pages are')
    .action(async (hubUrl: string) => {
      const { logInByDevice } = await import('./device-login.ts');
      await logInByDevice(hubUrl, io);
      io.stdout.write(`Logged in. Try: hub --url ${hubUrl} user list\n`);
    });

  program
    .command('logout')
    .description('end the login to a remote hub')
    .argument('<url>', 'where its pages are')
    .action(async (hubUrl: string) => {
      const { logOutOf } = await import('./device-login.ts');
      const wasLoggedIn = await logOutOf(hubUrl, io);
      io.stdout.write(wasLoggedIn ? 'Logged out.\n' : `You were not logged in to ${hubUrl}.\n`);
    });
}
