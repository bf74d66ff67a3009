/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What stands around the declarations of a header that programs include: its functions can be seen
 * outside of the library that they are linked into, if the library's version map names them, and
 * C++ calls them by their names. All else of ours is hidden.
 */
#ifndef RCD_API_H
#define RCD_API_H

#ifdef __cplusplus
#define RCD_API_BEGIN                                                                              \
	extern "C" {                                                                               \
	_Pragma("GCC visibility push(default)")
#define RCD_API_END                                                                                \
	_Pragma("GCC visibility pop")                                                              \
	}
#else
/** Behind the includes of a header: from here on its functions are public. */
#define RCD_API_BEGIN _Pragma("GCC visibility push(default)")
/** Before the end of that header. */
#define RCD_API_END   _Pragma("GCC visibility pop")
#endif

#endif /* RCD_API_H */
