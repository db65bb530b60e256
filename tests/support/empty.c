/* Keeps the support library non-empty on its own. SPDX-License-Identifier: MIT */
int mu_test_support_present(void);
int mu_test_support_present(void)
{
	return 1;
}
