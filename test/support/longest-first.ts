import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Test files that take longest, in this order. Begun late, each of them would run alone at the end. */
export const longest: readonly string[] = [
  'test/deploy/compose-several-hubs.test.ts',
  'test/hub/services-on-instances.test.ts',
  'test/browser/accessibility.test.ts',
  'test/examples/several-hubs.test.ts',
  'test/hub/log-trouble.test.ts',
  'src/spawning/slurm/slurm-contract.test.ts',
  'test/attacks/authorisation-matrix.test.ts',
  'test/hub/gateways.test.ts',
  'test/hub/backup.test.ts',
  'test/attacks/gateways.test.ts',
  'test/hub/database-faults.test.ts',
  'test/hub/servers-restart.test.ts',
  'test/hub/process.test.ts',
  'test/hub/network-cut.test.ts',
  'test/hub/servers-access.test.ts',
  'test/hub/takeover-cut-short.test.ts',
  'test/hub/start-signals.test.ts',
  'test/examples/configurations.test.ts',
  'src/servers/servers-of-instances.test.ts',
  'test/browser/layout.test.ts',
  'test/browser/oauth-popups.test.ts',
  'test/browser/oauth-clients.test.ts',
  'test/hub/singleuser.test.ts',
  'src/spawning/docker/podman.test.ts',
  'test/hub/logs-command.test.ts',
  'test/hub/silent-database.test.ts',
  'test/hub/slurm.test.ts',
  'test/hub/server-instances.test.ts',
  'test/hub/instances-seen.test.ts',
  'test/attacks/own-origin.test.ts',
  'test/hub/database-away.test.ts',
  'src/spawning/docker/docker-spawner.test.ts',
  'test/hub/reload-of-several.test.ts',
  'test/attacks/soak.test.ts',
  'test/hub/plugins-outside.test.ts',
  'test/hub/gateway-process.test.ts',
  'test/hub/logs.test.ts',
  'test/hub/servers-elsewhere.test.ts',
  'test/browser/admin.test.ts',
  'test/hub/started-twice.test.ts',
  'test/hub/servers-failures.test.ts',
  'test/hub/instances.test.ts',
  'test/hub/systemd.test.ts',
  'src/spawning/docker/docker-contract.test.ts',
  'test/hub/kubernetes-servers.test.ts',
  'test/hub/killed-starts.test.ts',
  'test/hub/under-load.test.ts',
  'test/unused-members.test.ts',
  'test/hub/servers-api.test.ts',
  'src/store/postgres-changes.test.ts',
  'src/spawning/kubernetes/kubernetes-spawner.test.ts',
  'src/spawning/local-process/local-process-contract.test.ts',
  'test/examples/gateways.test.ts',
  'test/hub/loads.test.ts',
  'test/hub/server-settings.test.ts',
  'test/hub/slurm-restarts.test.ts',
  'test/attacks/exhaustion.test.ts',
  'test/hub/failures.test.ts',
  'test/hub/clocks-differ.test.ts',
  'test/hub/clock-jumps.test.ts',
  'test/hub/slow-storage.test.ts',
  'test/examples/lost-hub.test.ts',
  'test/hub/completion.test.ts',
  'test/hub/servers-pages.test.ts',
  'test/jupyter/notebook.test.ts',
  'test/hub/doctor.test.ts',
  'src/pages/every-page.test.ts',
  'test/examples/write-a-spawner.test.ts',
  'test/hub/docker-servers.test.ts',
  'test/examples/write-a-hook.test.ts',
  'src/processes/supervised-process.test.ts',
  'src/servers/queued-starts.test.ts',
  'test/examples/write-an-authenticator.test.ts',
  'test/examples/first-hub.test.ts',
];

/** How many long files, and how many of each kind of the others, come in turn. */
const turn = { long: 3, others: 9 };

/**
 * Begins the longest test files early, the longest of all first. They wait for the programs they start
 * most of their time, as those of a whole hub do, and the tests of parts keep the processor busy: so they
 * are mixed, a few at a time.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId, project }: TestSpecification) =>
      longest.indexOf(relative(project.config.root, moduleId));
    const sorted = await super.sort(files);
    const long = sorted
      .filter((file) => rankOf(file) !== -1)
      .toSorted((one, other) => rankOf(one) - rankOf(other));
    const others = Map.groupBy(
      sorted.filter((file) => rankOf(file) === -1),
      ({ moduleId, project }) => relative(project.config.root, moduleId).startsWith('test/'),
    );
    const mixed: TestSpecification[] = [];
    while (mixed.length < sorted.length) {
      mixed.push(...long.splice(0, turn.long));
      for (const ofProject of others.values()) mixed.push(...ofProject.splice(0, turn.others));
    }
    return mixed;
  }
}
