import type { BoundPages } from '../forms/binding.ts';
import { consentPage } from './consent-page.ts';
import { deviceDonePage, devicePage } from './device-page.ts';

/** `/hub/device`: where users type what their device shows, and say whether it may (RFC 8628 §3.3). */
export function deviceRoutes({ page, form, pages }: BoundPages): void {
  const again = page('/device', 'viewDeviceRequest', ({ layout, model, visitor, failure }) => {
    const { request, userCode } = model;
    if (request === undefined) {
      const isUnknown = userCode !== undefined && userCode !== '';
      return devicePage({ layout, userCode, isUnknown, problem: failure?.problem });
    }
    return consentPage({
      layout,
      userName: visitor.caller.owner.name,
      consent: request.consent,
      action: pages.urls.device,
      device: request,
    });
  });

  form('/device', 'decideDeviceRequest', {
    body: (sent) => ({
      user_code: sent.get('user_code') ?? '',
      decision: sent.get('decision') === 'allow' ? ('allow' as const) : ('deny' as const),
      scopes: sent.getAll('scopes'),
    }),
    again,
    done: ({ sent }) => ({
      show: (layout) => deviceDonePage(layout, { isAllowed: sent.get('decision') === 'allow' }),
    }),
  });
}
