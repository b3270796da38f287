import type Router from '@koa/router';
import type { CurrentBranding } from '../../../platform/branding/branding.ts';
import type { AssetUrls } from '../assets/assets.ts';

/**
 * Addresses of the hub that pages of JupyterHub software name: the logo they show, and where they
 * have browsers report violations of their content security policy, which this hub ignores.
 */
export function jupyterHubRoutes(
  router: Router,
  { assets, branding }: { readonly assets: AssetUrls; readonly branding: CurrentBranding },
): void {
  router.get('/logo', (ctx) =>
    ctx.redirect(assets.url(branding.current.logo?.file ?? 'favicon.svg')),
  );
  router.post('/security/csp-report', (ctx) => {
    ctx.status = 204;
  });
}
