import { auditPage } from './audit-page.ts';
import { capacityPage } from './capacity-page.ts';
import { commandLinePage } from './command-line-page.ts';
import { configurationPage } from './configuration-page.ts';
import { dashboard } from './dashboard.ts';
import { errorsPage } from './errors-page.ts';
import { helmValuesPage } from './helm-values-page.ts';
import { httpApiPage } from './http-api-page.ts';
import { jupyterHubPage } from './jupyterhub-page.ts';
import { jupyterHubSettingsPage } from './jupyterhub-settings-page.ts';
import { metricsPage } from './metrics-page.ts';
import { scopesPage } from './scopes-page.ts';

/** The pages, and other files, that are made from the source, by their path in the repository. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/reference/configuration.md', await configurationPage()],
    ['docs/reference/scopes.md', scopesPage()],
    ['docs/reference/audit.md', auditPage()],
    ['docs/reference/http-api.md', httpApiPage()],
    ['docs/reference/jupyterhub-api.md', jupyterHubPage()],
    ['docs/reference/jupyterhub-settings.md', jupyterHubSettingsPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ['deploy/monitoring/dashboard.json', dashboard()],
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/helm-values.md', helmValuesPage()],
    ['docs/reference/command-line.md', commandLinePage()],
    ['docs/reference/capacity.md', capacityPage()],
  ]);
}
