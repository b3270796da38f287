import type Router from '@koa/router';
import type { Assets } from '../assets/assets.ts';

/**
 * Addresses of the hub that pages of JupyterHub software name: the logo they show, and where they
 * have browsers report violations of their content security policy, which this hub ignores.
 */
export function jupyterHubRoutes(router: Router, { assets }: { readonly assets: Assets }): void {
  router.get('/logo', (ctx) => ctx.redirect(assets.url('favicon.svg')));
  router.post('/security/csp-report', (ctx) => {
    ctx.status = 204;
  });
}
