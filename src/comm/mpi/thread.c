/* The comm thread: opens MPI, starts and tests jobs until it is told to stop, closes MPI.
 *
 * It never blocks inside MPI while jobs run: a library that polls would take a core from the arithmetic. Between two rounds
 * of tests it sleeps 50 us; with nothing in flight it sleeps on a condition, until the next heartbeat is due (heart.c).
 * SPDX-License-Identifier: MIT */
#include "comm/mpi/inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"

static const double TEST_PAUSE = 50e-6; /* seconds */
static const unsigned long TIMER_SLACK = 5000; /* ns; the kernel's 50000 would double the pause */

static mural_status mpi_failed(mural_error *err, int code, const char *doing)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;
	mural_status status = MURAL_FAILED;
#ifdef MPIX_ERR_PROC_FAILED
	int class = MPI_SUCCESS;
	MPI_Error_class(code, &class);
	if (class == MPIX_ERR_PROC_FAILED)
		status = MURAL_PEER;
#endif
	MPI_Error_string(code, text, &length);
	return mu_fail(err, status, NULL, "MPI failed %s: %s", doing, text);
}

/* "Open MPI v4.1.4, package: ..." or "MPICH Version:      4.0.2\n..." become "Open MPI 4.1.4", "MPICH 4.0.2". */
void mu_mpi_library(char *out, size_t capacity)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0;
	MPI_Get_library_version(text, &length);
	text[strcspn(text, ",\n")] = '\0';
	size_t used = 0;
	char *keep = NULL;
	for (char *word = strtok_r(text, " \t", &keep); word; word = strtok_r(NULL, " \t", &keep)) {
		if (strcmp(word, "Version:") == 0)
			continue;
		if (word[0] == 'v' && isdigit((unsigned char)word[1]))
			word++;
		used += (size_t)snprintf(out + used, capacity - used, "%s%s", used ? " " : "", word);
		if (used >= capacity)
			return;
	}
}

static mural_status read_facts(mu_mpi_comm *comm, mural_error *err)
{
	mu_comm_facts *facts = &comm->world.facts;
	MPI_Comm host;
	int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm->world.among);
	if (!code)
		code = MPI_Comm_set_errhandler(comm->world.among, MPI_ERRORS_RETURN);
	if (!code)
		code = mu_mpi_narrow_make(comm);
	if (!code)
		code = MPI_Comm_split_type(comm->world.among, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	if (code)
		return mpi_failed(err, code, "at start");
	MPI_Comm_rank(comm->world.among, &facts->rank);
	MPI_Comm_size(comm->world.among, &facts->size);
	MPI_Comm_rank(host, &facts->local_rank);
	MPI_Comm_size(host, &facts->local_size);
	MPI_Comm_free(&host);
	if (gethostname(facts->host, sizeof facts->host - 1))
		strcpy(facts->host, "localhost");
	mu_mpi_library(facts->library, sizeof facts->library);
	return MURAL_OK;
}

static mural_status open_mpi(mu_mpi_comm *comm, mural_error *err)
{
	int there = 0, gone = 0, level = MPI_THREAD_SINGLE, code = MPI_SUCCESS;
	MPI_Initialized(&there);
	MPI_Finalized(&gone);
	if (gone)
		return mu_fail(err, MURAL_USAGE, NULL, "MPI was closed in this process; it can be opened once only");
	if (there)
		MPI_Query_thread(&level);
	else
		code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
	if (code)
		return mpi_failed(err, code, "to initialise");
	comm->initialised = !there;
	if (there && level < MPI_THREAD_MULTIPLE)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "this program initialised MPI without MPI_THREAD_MULTIPLE, and Mural calls MPI from a "
		               "thread of its own: ask for that level, or let Mural initialise MPI");
	if (level < MPI_THREAD_FUNNELED)
		return mu_fail(err, MURAL_FAILED, NULL,
		               "this MPI library does not support programs with threads (MPI_THREAD_FUNNELED)");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	return read_facts(comm, err);
}

static void close_mpi(mu_mpi_comm *comm)
{
	mu_mpi_heart_end(comm);
	mu_mpi_narrow_free(comm);
	for (mu_mpi_group *group = comm->groups; group; group = group->next)
		if (group->among != MPI_COMM_NULL)
			MPI_Comm_free(&group->among);
	if (comm->world.among != MPI_COMM_NULL)
		MPI_Comm_free(&comm->world.among);
	if (comm->initialised)
		MPI_Finalize();
}

static void finish(mu_mpi_comm *comm, mu_mpi_job *job)
{
	pthread_mutex_lock(&comm->lock);
	job->pending->ended = mu_now();
	job->busy = false;
	pthread_cond_broadcast(&comm->done);
	pthread_mutex_unlock(&comm->lock);
}

void mu_mpi_break(mu_mpi_comm *comm, const mural_error *failure)
{
	pthread_mutex_lock(&comm->lock);
	if (comm->failure.status == MURAL_OK)
		comm->failure = *failure;
	pthread_cond_broadcast(&comm->done);
	pthread_mutex_unlock(&comm->lock);
}

static void fail(mu_mpi_comm *comm, int code)
{
	mural_error err = {0};
	mpi_failed(&err, code, "during a collective");
	mu_mpi_break(comm, &err);
}

/* Starts what has been posted up to `posted`. Returns MPI's code. */
static int start_jobs(mu_mpi_comm *comm, uint64_t posted)
{
	while (comm->next < posted) {
		mu_mpi_job *job = &comm->ring[comm->next % MU_MPI_RING];
		bool *active = &comm->active[comm->next % MU_MPI_RING];
		if (*active)
			return MPI_SUCCESS; /* one of its steps is under way */
		if (job->step < job->steps) {
			int code = mu_mpi_start(comm, job);
			if (code)
				return code;
			*active = true;
			job->step++;
		}
		if (job->step < job->steps)
			return MPI_SUCCESS;
		comm->next++;
		if (!*active)
			finish(comm, job); /* of no elements */
	}
	return MPI_SUCCESS;
}

/* Tests what is in flight; *moved says whether anything finished. Returns MPI's code. */
static int test_jobs(mu_mpi_comm *comm, uint64_t posted, bool *moved)
{
	*moved = false;
	for (uint64_t n = comm->first; n < posted && n <= comm->next; n++) {
		mu_mpi_job *job = &comm->ring[n % MU_MPI_RING];
		bool *active = &comm->active[n % MU_MPI_RING];
		int finished = 0;
		if (!*active)
			continue;
		int code = MPI_Test(&job->request, &finished, MPI_STATUS_IGNORE);
		if (code)
			return code;
		if (!finished)
			continue;
		*moved = true;
		*active = false;
		if (job->strided != MPI_DATATYPE_NULL)
			MPI_Type_free(&job->strided);
		if (job->step == job->steps)
			finish(comm, job);
	}
	while (comm->first < comm->next && !comm->active[comm->first % MU_MPI_RING])
		comm->first++;
	return MPI_SUCCESS;
}

/* Under the lock: until somebody signals, or the heart's next round is due. */
static void doze(mu_mpi_comm *comm)
{
	if (!comm->heart.alive) {
		pthread_cond_wait(&comm->work, &comm->lock);
		return;
	}
	double due = comm->heart.due;
	struct timespec until = {.tv_sec = (time_t)due, .tv_nsec = (long)((due - (double)(time_t)due) * 1e9)};
	pthread_cond_timedwait(&comm->work, &comm->lock, &until);
}

/* What there is to do. */
typedef struct task {
	mu_mpi_order order;
	uint64_t posted; /* jobs by now */
	bool works, beats; /* jobs are there; the heart calls */
} task;

/* Sleeps while there is nothing. */
static task look(mu_mpi_comm *comm)
{
	task found;
	pthread_mutex_lock(&comm->lock);
	for (;;) {
		found = (task){.order = comm->order, .posted = comm->posted};
		found.works = comm->first != comm->posted && comm->failure.status == MURAL_OK;
		found.beats = mu_mpi_heart_calls(comm);
		if (found.order != MU_MPI_RUN || found.works || found.beats)
			break;
		doze(comm);
	}
	pthread_mutex_unlock(&comm->lock);
	return found;
}

static void run(mu_mpi_comm *comm, const task *found)
{
	bool moved = false;
	int code = found->beats ? mu_mpi_heart_round(comm) : MPI_SUCCESS;
	if (!code && found->works)
		code = start_jobs(comm, found->posted);
	if (!code && found->works)
		code = test_jobs(comm, found->posted, &moved);
	if (code)
		fail(comm, code);
	else if (found->works && !moved && comm->first < found->posted)
		mu_sleep(TEST_PAUSE);
}

void *mu_mpi_thread(void *argument)
{
	mu_mpi_comm *comm = argument;
	mural_error err = {0};
	prctl(PR_SET_NAME, "mural-comm");
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK);
	open_mpi(comm, &err);

	pthread_mutex_lock(&comm->lock);
	comm->failure = err;
	comm->opened = true;
	pthread_cond_broadcast(&comm->done);
	pthread_mutex_unlock(&comm->lock);

	task found;
	while ((found = look(comm)).order == MU_MPI_RUN)
		run(comm, &found);
	if (found.order == MU_MPI_ABORT)
		MPI_Abort(MPI_COMM_WORLD, comm->code);
	else
		close_mpi(comm);
	return NULL;
}
