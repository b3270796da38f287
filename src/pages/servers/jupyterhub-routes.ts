import type Router from '@koa/router';
import type { CurrentLook } from '../../look/look.ts';
import type { AssetUrls } from '../assets/assets.ts';

/**
 * Addresses of the hub that pages of JupyterHub software name: the logo they show, and where they
 * have browsers report violations of their content security policy, which this hub ignores.
 */
export function jupyterHubRoutes(
  router: Router,
  { assets, look }: { readonly assets: AssetUrls; readonly look: CurrentLook },
): void {
  router.get('/logo', (ctx) => ctx.redirect(assets.url(look.current.logo?.file ?? 'favicon.svg')));
  router.post('/security/csp-report', (ctx) => {
    ctx.status = 204;
  });
}
