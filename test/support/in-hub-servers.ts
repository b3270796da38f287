import { join } from 'node:path';
import type { TestHubConfig } from './test-hub.ts';

/**
 * Configuration of hubs whose servers run in their own process, where a test is about who may do what with them and
 * not about the program: it starts and ends at once, and costs nothing while it runs.
 */
export const serversInHub = {
  Hub: { plugins_dir: join(import.meta.dirname, '../../fixtures/plugins'), cleanup_servers: true },
  Spawner: { class: 'in-hub', cmd: 'none', access: 'gateway' },
} as const satisfies TestHubConfig;
